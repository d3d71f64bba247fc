// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// ConfigMapName is the usual name of the ConfigMap that holds the record.
	ConfigMapName = "sandbox-apiserver-storage"
	// AcceptAnnotation on that ConfigMap accepts the loss whose token is its value, or the losses whose tokens are, separated by commas.
	AcceptAnnotation = "agents.x-k8s.io/accept-storage-loss"

	tokenSeparator = ","

	clusterIDKey = "clusterID"
	uuidKey      = "uuid"
	revisionKey  = "revision"

	descriptionAnnotation = "kubernetes.io/description"
	description           = "The etcd that sandbox-apiserver last stored in. Do not delete this: without it an etcd that lost its data goes " +
		"unnoticed, and the Pods and PersistentVolumeClaims of all lost Sandboxes are deleted."
)

// record is what the main cluster remembers of a storage.
type record struct {
	identity identity
	// revision is the high-water mark: the marker was once written at this revision, or later.
	revision int64
}

// parseRecord returns the record of the named storage in a ConfigMap. What cannot be read as one is the zero record, which is that of no
// storage.
func parseRecord(data map[string]string, name string) record {
	clusterID, err := strconv.ParseUint(data[keyOf(name, clusterIDKey)], 16, 64)
	if err != nil {
		return record{}
	}
	id := data[keyOf(name, uuidKey)]
	revision, err := strconv.ParseInt(data[keyOf(name, revisionKey)], 10, 64)
	if err != nil || id == "" {
		return record{}
	}
	return record{identity: identity{clusterID: clusterID, uuid: types.UID(id)}, revision: revision}
}

// keyOf returns the key in the ConfigMap for a field of the record of the named storage.
func keyOf(name, field string) string {
	if name == "" {
		return field
	}
	return name + "." + field
}

// recordedNames returns the names of the storages in a ConfigMap.
func recordedNames(data map[string]string) sets.Set[string] {
	names := sets.New[string]()
	for key := range data {
		// It is negative for the storage without a name.
		names.Insert(key[:max(strings.LastIndex(key, "."), 0)])
	}
	return names
}

func (r record) String() string { return fmt.Sprintf("%s:%d", r.identity, r.revision) }

// data returns what a ConfigMap says of the named storage.
func (r record) data(name string) map[string]string {
	return map[string]string{
		keyOf(name, clusterIDKey): strconv.FormatUint(r.identity.clusterID, 16),
		keyOf(name, uuidKey):      string(r.identity.uuid),
		keyOf(name, revisionKey):  strconv.FormatInt(r.revision, 10),
	}
}

// ledger keeps the record in a ConfigMap.
type ledger struct {
	name       types.NamespacedName
	configMaps corev1client.ConfigMapInterface
}

// read returns the ConfigMap, nil if there is none.
func (l ledger) read(ctx context.Context) (*corev1.ConfigMap, error) {
	configMap, err := l.configMaps.Get(ctx, l.name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading configmap %s: %w", l.name, err)
	}
	return configMap, nil
}

// write puts the records into the ConfigMap that was read before, or into a new one if there was none, and takes the annotation that
// accepts a loss away. It fails if the ConfigMap has changed since.
func (l ledger) write(ctx context.Context, current *corev1.ConfigMap, data map[string]string) error {
	if current == nil {
		_, err := l.configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: l.name.Namespace, Name: l.name.Name,
				Annotations: map[string]string{descriptionAnnotation: description},
			},
			Data: data,
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating configmap %s: %w", l.name, err)
		}
		return nil
	}
	updated := current.DeepCopy()
	updated.Data = data
	delete(updated.Annotations, AcceptAnnotation)
	if _, err := l.configMaps.Update(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating configmap %s: %w", l.name, err)
	}
	return nil
}
