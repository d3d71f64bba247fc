// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package realcluster

const nodeBindingPath = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/sandbox-localcluster:system:node"

// nodeBindingYAML gives the one node the rights of any node. The Node authorizer
// learns from a watch which claims the Pods of a node use; a kubelet that is
// quicker is refused, and then waits for seconds before it asks again.
const nodeBindingYAML = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: sandbox-localcluster:system:node
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: system:node
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: system:nodes
`
