// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
)

// Clients are the clients of one user at one server. They send as fast as they can: no test is to be slowed down by its own client.
type Clients struct {
	Config   *rest.Config
	Kube     kubernetes.Interface
	Agents   versioned.Interface
	Metadata metadata.Interface
}

// NewClients returns clients for a configuration, which is not changed.
func NewClients(config *rest.Config) (*Clients, error) {
	c := &Clients{Config: rest.CopyConfig(config)}
	c.Config.QPS = -1
	var errs [3]error
	c.Kube, errs[0] = kubernetes.NewForConfig(c.Config)
	c.Agents, errs[1] = versioned.NewForConfig(c.Config)
	c.Metadata, errs[2] = metadata.NewForConfig(c.Config)
	return c, errors.Join(errs[:]...)
}

// LoadClients returns clients for a kubeconfig file.
func LoadClients(kubeconfig string) (*Clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return NewClients(config)
}

// WriteKubeconfig writes a kubeconfig file for the server of a configuration and the token in it.
func WriteKubeconfig(config *rest.Config, file string) error {
	const name = "test"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return clientcmd.WriteToFile(*out, file)
}
