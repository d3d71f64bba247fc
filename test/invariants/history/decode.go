// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/scheme"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/factory"
)

// Prefix is that of all keys that Decode knows.
const Prefix = factory.EtcdPrefix + "/"

// Decode makes transactions of the events of a watch of etcd, which has the events of each revision one after the other. What is
// none of the objects that are judged is left out.
func Decode(events []*clientv3.Event) ([]Transaction, error) {
	var transactions []Transaction
	for _, event := range events {
		key, ok := parseKey(string(event.Kv.Key))
		if !ok {
			continue
		}
		change := Change{Key: key}
		if event.Type == clientv3.EventTypePut {
			object, _, err := scheme.Codecs.UniversalDeserializer().Decode(event.Kv.Value, nil, nil)
			if err != nil {
				return nil, fmt.Errorf("decoding %s of revision %d: %w", key, event.Kv.ModRevision, err)
			}
			if change.Object = Describe(object); change.Object == nil {
				return nil, fmt.Errorf("%s of revision %d is a %T", key, event.Kv.ModRevision, object)
			}
		}
		revision := event.Kv.ModRevision
		if n := len(transactions); n == 0 || transactions[n-1].Revision != revision {
			transactions = append(transactions, Transaction{Revision: revision})
		}
		last := &transactions[len(transactions)-1]
		last.Changes = append(last.Changes, change)
	}
	return transactions, nil
}

// parseKey takes <group>/<resource>/<namespace>/<name> apart.
func parseKey(key string) (Key, bool) {
	parts := strings.Split(strings.TrimPrefix(key, Prefix), "/")
	if len(parts) != 4 || !slices.Contains([]string{Claims, Sandboxes, Pools}, parts[1]) {
		return Key{}, false
	}
	return Key{Resource: parts[1], Namespace: parts[2], Name: parts[3]}, true
}
