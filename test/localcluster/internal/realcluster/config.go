// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package realcluster

import (
	"bytes"
	"fmt"
	"net/netip"
	"path/filepath"
	"text/template"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/cluster"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/controlplane"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/image"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
)

// Names of the node's programs.
const (
	containerd = "containerd"
	kubelet    = "kubelet"
	kubeProxy  = "kube-proxy"
)

func config() controlplane.Config {
	return controlplane.Config{
		Name:                  "sandbox-real",
		Dir:                   stateDir,
		Binary:                binary,
		APIServer:             netip.AddrPortFrom(hostIP, apiServerPort),
		EtcdClient:            etcdClientPort,
		EtcdPeer:              etcdPeerPort,
		ControllerManagerPort: controllerManagerPort,
		SchedulerPort:         schedulerPort,
		Services:              services,
		Nodes:                 []string{nodeName},
		NodeIP:                nodeIP,
		Durable:               true,
	}
}

// binary returns the cluster's own link to a program. The cache may be anywhere,
// also where the node's mount namespace hides it.
func binary(name string) string { return filepath.Join(binDir, name) }

func newPlan(binaries map[string]string) cluster.Plan {
	c := config()
	manager := c.ControllerManagerSpec()
	// It makes the directories of hostpath volumes, which kubelet is to find:
	// both see the node's /tmp.
	manager.Command = append([]string{"nsenter", "--mount=" + mountNS, "--"}, manager.Command...)
	return cluster.Plan{
		Binaries: binaries,
		Files: map[string]string{
			c.AuditPolicy():                        controlplane.AuditPolicyYAML,
			statePath("containerd.toml"):           render(containerdTOML),
			statePath("cni", "10-bridge.conflist"): render(cniJSON),
			statePath("kubelet.yaml"):              render(kubeletYAML),
			statePath("resolv.conf"):               "",
		},
		First: []process.Spec{c.EtcdSpec(), c.APIServerSpec(), containerdSpec()},
		Then:  []process.Spec{manager, c.SchedulerSpec(), kubeletSpec(c), kubeProxySpec(c)},
		Objects: map[string]string{
			controlplane.StorageClassPath: controlplane.StorageClassYAML,
			nodeBindingPath:               nodeBindingYAML,
		},
	}
}

// onNode tells whether a process belongs into the node's cgroup.
func onNode(name string) bool { return name == containerd || name == kubelet || name == kubeProxy }

// nodeSpec makes a command run in the node's namespaces. It is nsenter and not
// "ip netns exec", which mounts another /sys that lacks the cgroups.
func nodeSpec(name string, args ...string) process.Spec {
	command := []string{"nsenter", "--net=" + netnsFile, "--mount=" + mountNS, "--", binary(name)}
	return process.Spec{Name: name, Command: append(command, args...)}
}

func containerdSpec() process.Spec {
	return nodeSpec(containerd, "--config="+statePath("containerd.toml"), "--log-level=info")
}

func kubeletSpec(c controlplane.Config) process.Spec {
	return nodeSpec(kubelet,
		"--config="+statePath("kubelet.yaml"),
		"--kubeconfig="+filepath.Join(c.PKI(), "kubelet.kubeconfig"),
		"--hostname-override="+nodeName,
		"--node-ip="+nodeIP.String(),
		"--root-dir="+statePath("kubelet"),
		"--cert-dir="+statePath("kubelet", "pki"))
}

func kubeProxySpec(c controlplane.Config) process.Spec {
	return nodeSpec(kubeProxy,
		"--kubeconfig="+filepath.Join(c.PKI(), "kube-proxy.kubeconfig"),
		"--proxy-mode=nftables",
		"--cluster-cidr="+pods.String(),
		"--hostname-override="+nodeName,
		"--nodeport-addresses="+netip.PrefixFrom(nodeIP, nodeIP.BitLen()).String(),
		"--healthz-bind-address=127.0.0.1",
		"--metrics-bind-address=127.0.0.1",
		// Zero leaves the kernel's settings alone; a network namespace
		// may not be allowed to write them.
		"--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0",
		"--conntrack-tcp-timeout-close-wait=0")
}

// values are what the templates below refer to.
var values = map[string]any{
	"State": stateDir, "Run": runDir, "Bin": binDir, "PKI": statePath("pki"),
	"Socket": containerdSocket, "Cgroup": cgroup, "Pause": image.PauseName,
	"NodeIP": nodeIP, "Pods": pods, "Services": services, "Link": linkNet,
}

func render(text string) string {
	var out bytes.Buffer
	t := template.Must(template.New("").Option("missingkey=error").Parse(text))
	if err := t.Execute(&out, values); err != nil {
		panic(fmt.Sprintf("template of this package: %v", err))
	}
	return out.String()
}

// restrict_oom_score_adj: without CAP_SYS_RESOURCE, runc cannot give pods a
// lower score than containerd's own, and would refuse to start them.
const containerdTOML = `version = 3
root = "{{.State}}/containerd"
state = "{{.Run}}/containerd"
disabled_plugins = [
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs",
]

[grpc]
  address = "{{.Socket}}"

[ttrpc]
  address = "{{.Socket}}.ttrpc"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"

  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{{.Pause}}"

[plugins."io.containerd.cri.v1.runtime"]
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true

  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{{.Bin}}"]
    conf_dir = "{{.State}}/cni"

  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"

    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{{.Bin}}/runc"
        SystemdCgroup = false
`

// The routes' destinations must be network addresses: 10.87.0.1/30 is refused.
const cniJSON = `{
  "cniVersion": "1.0.0",
  "name": "sandbox",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "{{.State}}/cni-ipam",
        "ranges": [[{"subnet": "{{.Pods}}"}]],
        "routes": [{"dst": "{{.Services}}"}, {"dst": "{{.Link}}"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// Eviction is set so low that a full development disk does not drain the node.
const kubeletYAML = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: {{.PKI}}/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: {{.PKI}}/kubelet-serving.crt
tlsPrivateKeyFile: {{.PKI}}/kubelet-serving.key
address: {{.NodeIP}}
healthzBindAddress: 127.0.0.1
containerRuntimeEndpoint: unix://{{.Socket}}
cgroupDriver: cgroupfs
cgroupRoot: /{{.Cgroup}}
failCgroupV1: false
failSwapOn: false
resolvConf: {{.State}}/resolv.conf
# Nothing answers there: there is no DNS add-on. Without an address every Pod would get a warning event.
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
podLogsDir: {{.State}}/pod-logs
volumePluginDir: {{.State}}/volume-plugins
evictionHard:
  memory.available: 100Mi
  nodefs.available: 1%
  imagefs.available: 1%
imageGCHighThresholdPercent: 100
serializeImagePulls: false
`
