// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package lightcluster

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/build"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/cluster"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/component"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/controlplane"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
)

const kwok = "kwok"

// Ports are numbered from the API server's.
const (
	etcdClientOffset = 1 + iota
	etcdPeerOffset
	kwokOffset
	controllerManagerOffset
	schedulerOffset
	externalEtcdClientOffset
	externalEtcdPeerOffset
	// From here on it is those of a first instance of each of this project's
	// programs. Those of the others follow.
	sandboxAPIServerOffset
	controllerMetricsOffset
	controllerHealthOffset
	nextInstanceOffset

	portsPerInstance = nextInstanceOffset - sandboxAPIServerOffset
	// MaxInstances is how many processes of one program there may be in a cluster.
	MaxInstances = 3
	// PortsPerCluster is how far apart the ports of two clusters must be.
	PortsPerCluster = sandboxAPIServerOffset + MaxInstances*portsPerInstance
)

var (
	loopback = netip.MustParseAddr("127.0.0.1")
	// pods are addresses of this machine; services are unreachable.
	pods     = netip.MustParsePrefix("10.90.0.0/16")
	services = netip.MustParsePrefix("10.97.0.0/16")
)

// controllers are those that do something without real nodes. Fewer start faster.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"deployment-controller",
	"disruption-controller",
	"endpoints-controller",
	"endpointslice-controller",
	"ephemeral-volume-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"persistentvolume-binder-controller",
	"persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"validatingadmissionpolicy-status-controller",
}

func (c Cluster) config(o Options, binaries *build.Binaries) controlplane.Config {
	config := controlplane.Config{
		Name:                  "sandbox-light",
		Dir:                   c.dir,
		Binary:                binaries.Path,
		APIServer:             netip.AddrPortFrom(loopback, o.Port),
		EtcdClient:            o.Port + etcdClientOffset,
		EtcdPeer:              o.Port + etcdPeerOffset,
		ControllerManagerPort: o.Port + controllerManagerOffset,
		SchedulerPort:         o.Port + schedulerOffset,
		Services:              services,
		NodeIP:                loopback,
		Controllers:           controllers,
		// It taints new nodes until node-lifecycle-controller sees that they are ready.
		DisabledAdmission: []string{"TaintNodesByCondition"},
	}
	for i := range o.Nodes {
		config.Nodes = append(config.Nodes, fmt.Sprintf("kwok-%d", i))
	}
	return config
}

func newPlan(c controlplane.Config, o Options, binaries *build.Binaries) (cluster.Plan, error) {
	stages, err := os.ReadFile(filepath.Join(binaries.Dirs[kwok], component.KwokStages))
	if err != nil {
		return cluster.Plan{}, err
	}
	kwokConfig := filepath.Join(c.Dir, "kwok.yaml")
	p := cluster.Plan{
		Binaries: binaries.Versions(),
		Files: map[string]string{
			c.AuditPolicy(): controlplane.AuditPolicyYAML,
			kwokConfig:      kwokYAML + string(stages),
		},
		First:   []process.Spec{c.EtcdSpec(), c.APIServerSpec()},
		Then:    []process.Spec{privateVolumes(c.ControllerManagerSpec()), c.SchedulerSpec(), kwokSpec(c, o, kwokConfig)},
		Objects: map[string]string{controlplane.StorageClassPath: controlplane.StorageClassYAML},
	}
	for _, node := range c.Nodes {
		p.Objects[nodePath(node)] = fmt.Sprintf(nodeYAML, node)
	}
	return p, nil
}

// privateVolumes gives the controller manager a directory of its own for
// hostpath volumes, which goes away with it: nothing ever reads them here.
func privateVolumes(spec process.Spec) process.Spec {
	const script = `mkdir -p /tmp/hostpath_pv && mount -t tmpfs none /tmp/hostpath_pv && exec "$@"`
	prefix := []string{"unshare", "--mount", "--propagation=private", "--", "sh", "-c", script, "sh"}
	spec.Command = append(prefix, spec.Command...)
	return spec
}

func kwokSpec(c controlplane.Config, o Options, config string) process.Spec {
	port := o.Port + kwokOffset
	return process.Spec{Name: kwok, Command: []string{
		c.Binary(kwok),
		"--kubeconfig=" + filepath.Join(c.PKI(), "admin.kubeconfig"),
		"--config=" + config,
		"--manage-all-nodes=true",
		"--cidr=" + pods.String(),
		"--node-ip=" + loopback.String(),
		fmt.Sprintf("--node-port=%d", port),
		"--server-address=" + netip.AddrPortFrom(loopback, port).String(),
		"--tls-cert-file=" + filepath.Join(c.PKI(), "kubelet-serving.crt"),
		"--tls-private-key-file=" + filepath.Join(c.PKI(), "kubelet-serving.key"),
	}}
}

func nodePath(name string) string { return "/api/v1/nodes/" + name }

const nodeYAML = `apiVersion: v1
kind: Node
metadata:
  name: %[1]s
  labels:
    kubernetes.io/hostname: %[1]s
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    type: kwok
  annotations:
    kwok.x-k8s.io/node: fake
spec: {}
`

// kwokYAML makes exec run a process of the host and logs be empty.
const kwokYAML = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata:
  name: all
spec:
  selector: {}
  execs:
  - local: {}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata:
  name: all
spec:
  selector: {}
  logs:
  - logsFile: /dev/null
    follow: false
`
