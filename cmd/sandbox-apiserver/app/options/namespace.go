// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"os"
	"strings"
)

// namespaceFile is where a Pod finds the namespace of its ServiceAccount.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ownNamespace returns the namespace of --namespace, or that of the Pod if it is empty.
func ownNamespace(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	content, err := os.ReadFile(namespaceFile)
	if err != nil {
		return "", fmt.Errorf("outside a Pod --namespace must be specified, or else --storage-fence=false and no --serving-cert-secret: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
