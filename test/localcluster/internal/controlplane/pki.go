// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net/netip"
	"os"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/kube"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/pki"
)

// Base names of the authorities.
const (
	clusterCA    = "ca"
	frontProxyCA = "front-proxy-ca"
)

// users are the clients that get a certificate and a kubeconfig file.
var users = []pki.Leaf{
	{Name: "admin", CommonName: "admin", Organizations: []string{"system:masters"}},
	{Name: "kube-controller-manager", CommonName: "system:kube-controller-manager"},
	{Name: "kube-scheduler", CommonName: "system:kube-scheduler"},
	{Name: "kube-proxy", CommonName: "system:kube-proxy"},
}

// WritePKI makes all certificates, keys and kubeconfig files of a new cluster.
func (c Config) WritePKI() error {
	dir := c.PKI()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, err := pki.NewAuthority(dir, clusterCA)
	if err != nil {
		return err
	}
	frontProxy, err := pki.NewAuthority(dir, frontProxyCA)
	if err != nil {
		return err
	}
	// The headers that name a user are believed only from this client. It has
	// an authority of its own, so that no other client can pass for it.
	if err := frontProxy.Issue(pki.Leaf{Name: "front-proxy-client", CommonName: "front-proxy-client"}); err != nil {
		return err
	}
	if err := pki.NewKeyPair(dir, "sa"); err != nil {
		return err
	}
	for _, leaf := range append(c.serverLeaves(), users...) {
		if err := ca.Issue(leaf); err != nil {
			return err
		}
	}
	return c.writeKubeconfigs()
}

// serverLeaves are the certificates of the API server, as server and as the
// kubelets' client, and of the kubelets.
func (c Config) serverLeaves() []pki.Leaf {
	loopback := netip.MustParseAddr("127.0.0.1")
	leaves := []pki.Leaf{
		{
			Name:       "apiserver",
			CommonName: APIServer,
			DNSNames: []string{
				"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local",
			},
			IPs: toIPs(loopback, c.APIServer.Addr(), c.serviceIP()),
		},
		{
			Name:          "apiserver-kubelet-client",
			CommonName:    "kube-apiserver-kubelet-client",
			Organizations: []string{"system:masters"},
		},
		{
			Name:       "kubelet-serving",
			CommonName: "system:node:" + c.Nodes[0],
			DNSNames:   append([]string{"localhost"}, c.Nodes...),
			IPs:        toIPs(loopback, c.NodeIP),
		},
		{
			Name:          "kubelet",
			CommonName:    "system:node:" + c.Nodes[0],
			Organizations: []string{"system:nodes"},
		},
	}
	return leaves
}

func (c Config) writeKubeconfigs() error {
	names := []string{"kubelet"}
	for _, u := range users {
		names = append(names, u.Name)
	}
	for _, name := range names {
		if err := kube.WriteKubeconfig(c.PKI(), c.Name, c.Server(), name); err != nil {
			return err
		}
	}
	return nil
}

// IssueServing makes a serving certificate NAME.crt, signed by the cluster's
// authority, for a server that was not there when the cluster was made.
func (c Config) IssueServing(name string, dnsNames ...string) error {
	ca, err := pki.LoadAuthority(c.PKI(), clusterCA)
	if err != nil {
		return err
	}
	return ca.Issue(pki.Leaf{Name: name, CommonName: name, DNSNames: dnsNames})
}
