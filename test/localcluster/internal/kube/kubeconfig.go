// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube talks to the API server of a local cluster. It is a few requests
// at start-up, for which plain HTTP is enough.
package kube

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"text/template"
)

var kubeconfig = template.Must(template.New("kubeconfig").Funcs(template.FuncMap{
	"base64": base64.StdEncoding.EncodeToString,
}).Parse(`apiVersion: v1
kind: Config
clusters:
- name: {{.Cluster}}
  cluster:
    server: {{.Server}}
    certificate-authority-data: {{base64 .CA}}
users:
- name: {{.User}}
  user:
    client-certificate-data: {{base64 .Cert}}
    client-key-data: {{base64 .Key}}
contexts:
- name: {{.Cluster}}
  context:
    cluster: {{.Cluster}}
    user: {{.User}}
current-context: {{.Cluster}}
`))

// WriteKubeconfig writes USER.kubeconfig from USER.crt, USER.key and ca.crt of a directory.
func WriteKubeconfig(dir, cluster, server, user string) error {
	var files [3][]byte
	for i, name := range []string{"ca.crt", user + ".crt", user + ".key"} {
		var err error
		if files[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	err := kubeconfig.Execute(&out, struct {
		Cluster, Server, User string
		CA, Cert, Key         []byte
	}{cluster, server, user, files[0], files[1], files[2]})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, user+".kubeconfig"), out.Bytes(), 0o600)
}
