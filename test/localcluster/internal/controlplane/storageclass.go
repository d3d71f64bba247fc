// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

// StorageClassPath is the path of the default StorageClass.
const StorageClassPath = "/apis/storage.k8s.io/v1/storageclasses/hostpath"

// StorageClassYAML is the default StorageClass. Its provisioner is within
// kube-controller-manager.
const StorageClassYAML = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: hostpath
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: kubernetes.io/host-path
reclaimPolicy: Delete
volumeBindingMode: Immediate
`
