package controlplane

import (
	"context"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/kube"
)

// storageClass is served by a provisioner within kube-controller-manager.
const storageClass = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: hostpath
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: kubernetes.io/host-path
reclaimPolicy: Delete
volumeBindingMode: Immediate
`

// ApplyStorageClass makes the default StorageClass.
func ApplyStorageClass(ctx context.Context, client *kube.Client) error {
	return client.Apply(ctx, "/apis/storage.k8s.io/v1/storageclasses/hostpath", []byte(storageClass))
}
