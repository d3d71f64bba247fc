// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Key is the etcd key of the marker. It lies outside the prefix of the resources, whatever that is, and is frozen: under another key
// every storage would look like a new one.
const Key = "/sandbox-apiserver/identity"

// identity tells one storage from another.
type identity struct {
	// clusterID is etcd's own. It does not suffice: etcd derives it from the addresses of the first members, so a member that lost its
	// data gets the same one again.
	clusterID uint64
	// uuid is the value of the marker.
	uuid types.UID
}

func (i identity) String() string { return fmt.Sprintf("%x/%s", i.clusterID, i.uuid) }

// observation is what etcd says of itself. Both revisions come from linearizable operations, so they never go back while the storage
// is the same.
type observation struct {
	identity identity
	// revision is the current one of the whole storage.
	revision int64
	// marked is the revision at which the marker was last written.
	marked int64
}

// token stands for exactly the state that was observed: only a Fence writes the marker.
func (o observation) token() string { return fmt.Sprintf("%s:%d", o.identity, o.marked) }

// marker is the key in etcd that carries the identity and, as the revision of its last write, the high-water mark. That revision is a
// better witness than the current one: writes after a rollback, or a restore that skips revisions (etcdutl's --bump-revision), raise
// the current one past the recorded mark, but do not bring the lost write of the marker back.
type marker struct {
	kv clientv3.KV
}

// observe returns the state of the storage. A storage without a marker gets one.
func (m marker) observe(ctx context.Context) (observation, error) {
	response, err := m.kv.Get(ctx, Key)
	if err != nil {
		return observation{}, fmt.Errorf("reading etcd key %s: %w", Key, err)
	}
	if len(response.Kvs) == 0 {
		return m.write(ctx, observation{}, uuid.NewUUID())
	}
	kv := response.Kvs[0]
	return observation{
		identity: identity{clusterID: response.Header.ClusterId, uuid: types.UID(kv.Value)},
		revision: response.Header.Revision,
		marked:   kv.ModRevision,
	}, nil
}

// write writes the marker and returns the state after that. It fails if the marker is not as observed any more.
func (m marker) write(ctx context.Context, observed observation, id types.UID) (observation, error) {
	response, err := m.kv.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(Key), "=", observed.marked)).
		Then(clientv3.OpPut(Key, string(id))).
		Commit()
	if err != nil {
		return observation{}, fmt.Errorf("writing etcd key %s: %w", Key, err)
	}
	if !response.Succeeded {
		return observation{}, fmt.Errorf("writing etcd key %s: another server wrote it at the same time", Key)
	}
	return observation{
		identity: identity{clusterID: response.Header.ClusterId, uuid: id},
		revision: response.Header.Revision,
		marked:   response.Header.Revision,
	}, nil
}

// advance moves the high-water mark to a new revision.
func (m marker) advance(ctx context.Context, observed observation) (observation, error) {
	return m.write(ctx, observed, observed.identity.uuid)
}

// rename gives the storage a new identity. What was recorded of the old one no longer applies to it, nor the other way round.
func (m marker) rename(ctx context.Context, observed observation) (observation, error) {
	return m.write(ctx, observed, uuid.NewUUID())
}
