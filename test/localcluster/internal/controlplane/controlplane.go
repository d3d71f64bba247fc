// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package controlplane describes the control plane of a local cluster: its
// certificates and the command lines of its programs. Both profiles use it.
package controlplane

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
)

// Names of the programs, which are also the names of their logs and binaries.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// Config is what differs between clusters.
type Config struct {
	// Name is the cluster's name in kubeconfig files.
	Name string
	// Dir is the state directory.
	Dir string
	// Binary returns the file of a program.
	Binary func(name string) string

	// APIServer is the address that the API server listens on and is reached at.
	APIServer netip.AddrPort
	// EtcdClient, EtcdPeer, ControllerManagerPort and SchedulerPort are ports on 127.0.0.1.
	EtcdClient, EtcdPeer                 uint16
	ControllerManagerPort, SchedulerPort uint16
	// Services is the range of ClusterIPs.
	Services netip.Prefix
	// Nodes are the names, and NodeIP the address, that kubelets serve at.
	Nodes  []string
	NodeIP netip.Addr

	// Durable makes etcd wait for the disk.
	Durable bool
	// Controllers are the controllers to run; nil means the usual ones.
	Controllers []string
	// DisabledAdmission are admission plugins that would need a controller that does not run.
	DisabledAdmission []string
}

// PKI is the directory of certificates, keys and kubeconfig files.
func (c Config) PKI() string { return filepath.Join(c.Dir, "pki") }

// AuditLog is the file that the API server logs every request to.
func (c Config) AuditLog() string { return filepath.Join(c.Dir, "audit", "audit.log") }

// AuditPolicy is the file that tells the API server what to log; see AuditPolicyYAML.
func (c Config) AuditPolicy() string { return filepath.Join(c.Dir, "audit-policy.yaml") }

// AuditPolicyYAML logs who did what, but no contents. One event a request, at
// its end (for a watch: when it began), is enough to find it by its Audit-ID.
const AuditPolicyYAML = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Server is the URL of the API server.
func (c Config) Server() string { return "https://" + c.APIServer.String() }

// EtcdSpec returns the command line of etcd. It listens on the loopback
// interface only, without TLS.
func (c Config) EtcdSpec() process.Spec {
	client := fmt.Sprintf("http://127.0.0.1:%d", c.EtcdClient)
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.EtcdPeer)
	args := []string{
		c.Binary(Etcd),
		"--data-dir=" + filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--log-level=warn",
	}
	if !c.Durable {
		args = append(args, "--unsafe-no-fsync")
	}
	return process.Spec{Name: Etcd, Command: args}
}

// APIServerSpec returns the command line of kube-apiserver.
func (c Config) APIServerSpec() process.Spec {
	args := []string{
		c.Binary(APIServer),
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", c.EtcdClient),
		"--bind-address=" + c.APIServer.Addr().String(),
		fmt.Sprintf("--secure-port=%d", c.APIServer.Port()),
		"--advertise-address=" + c.APIServer.Addr().String(),
		"--service-cluster-ip-range=" + c.Services.String(),
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--client-ca-file=" + c.file("ca.crt"),
		"--tls-cert-file=" + c.file("apiserver.crt"),
		"--tls-private-key-file=" + c.file("apiserver.key"),
		"--kubelet-certificate-authority=" + c.file("ca.crt"),
		"--kubelet-client-certificate=" + c.file("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + c.file("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.file("sa.pub"),
		"--service-account-signing-key-file=" + c.file("sa.key"),
		// The identity of a user is handed to aggregated API servers in
		// these headers, which they believe because of this certificate.
		"--requestheader-client-ca-file=" + c.file("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.file("front-proxy-client.crt"),
		"--proxy-client-key-file=" + c.file("front-proxy-client.key"),
		"--audit-policy-file=" + c.AuditPolicy(),
		"--audit-log-path=" + c.AuditLog(),
		"--audit-log-maxsize=200",
		"--audit-log-maxbackup=2",
		"--profiling=false",
	}
	if c.APIServer.Addr().IsLoopback() {
		// A loopback address is refused as an endpoint of the kubernetes Service.
		args = append(args, "--endpoint-reconciler-type=none")
	}
	if len(c.DisabledAdmission) > 0 {
		args = append(args, "--disable-admission-plugins="+strings.Join(c.DisabledAdmission, ","))
	}
	return process.Spec{Name: APIServer, Command: args}
}

// ControllerManagerSpec returns the command line of kube-controller-manager. It
// provisions volumes as directories below /tmp/hostpath_pv.
func (c Config) ControllerManagerSpec() process.Spec {
	kubeconfig := c.file("kube-controller-manager.kubeconfig")
	args := []string{
		c.Binary(ControllerManager),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ControllerManagerPort),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.file("sa.key"),
		"--root-ca-file=" + c.file("ca.crt"),
		"--cluster-signing-cert-file=" + c.file("ca.crt"),
		"--cluster-signing-key-file=" + c.file("ca.key"),
		"--enable-hostpath-provisioner=true",
	}
	if c.Controllers != nil {
		args = append(args, "--controllers="+strings.Join(c.Controllers, ","))
	}
	return process.Spec{Name: ControllerManager, Command: args}
}

// SchedulerSpec returns the command line of kube-scheduler.
func (c Config) SchedulerSpec() process.Spec {
	kubeconfig := c.file("kube-scheduler.kubeconfig")
	return process.Spec{Name: Scheduler, Command: []string{
		c.Binary(Scheduler),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.SchedulerPort),
		"--leader-elect=false",
	}}
}

// file returns a file of the PKI directory.
func (c Config) file(name string) string { return filepath.Join(c.PKI(), name) }

// serviceIP is the ClusterIP of the kubernetes Service: the first of the range.
func (c Config) serviceIP() netip.Addr { return c.Services.Masked().Addr().Next() }

// toIPs converts addresses for a certificate.
func toIPs(addrs ...netip.Addr) []net.IP {
	ips := make([]net.IP, len(addrs))
	for i, a := range addrs {
		ips[i] = a.AsSlice()
	}
	return ips
}
