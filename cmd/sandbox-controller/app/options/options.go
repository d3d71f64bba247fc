// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package options holds the flags of sandbox-controller.
package options

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// Disabled is the value of an address flag that turns its listener off.
const Disabled = "0"

// serviceAccountNamespaceFile is where a Pod finds the namespace that it runs in.
const serviceAccountNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Options are the flags of sandbox-controller.
type Options struct {
	// Kubeconfig is the file with the credentials for the cluster. Empty means those of the Pod.
	Kubeconfig string
	// SandboxKubeconfig is the file with the credentials for the server of Sandboxes. Empty means to reach it through the cluster.
	SandboxKubeconfig string
	// KubeAPIQPS is the rate of requests, per second, that a client limits itself to. Not above 0 means no limit.
	KubeAPIQPS float32
	// KubeAPIBurst is how many requests a client may make at once under a limit.
	KubeAPIBurst int

	LeaderElect             bool
	LeaderElectionNamespace string

	ClusterDomain            string
	SandboxConcurrentWorkers int
	DisableSandboxEvents     bool

	// Extensions are the options about templates, warm pools and claims.
	Extensions *ExtensionsOptions

	MetricsBindAddress     string
	HealthProbeBindAddress string

	Logging *logsapi.LoggingConfiguration

	namespaceFile string
}

// New returns the Options with their defaults.
func New() *Options {
	return &Options{
		KubeAPIQPS:               -1,
		KubeAPIBurst:             10,
		LeaderElect:              true,
		ClusterDomain:            "cluster.local",
		SandboxConcurrentWorkers: 100,
		Extensions:               newExtensionsOptions(),
		MetricsBindAddress:       ":8080",
		HealthProbeBindAddress:   ":8081",
		Logging:                  logsapi.NewLoggingConfiguration(),
		namespaceFile:            serviceAccountNamespaceFile,
	}
}

// AddFlags adds the flags to the set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "File with the address of and the credentials for the cluster. Empty: those of the Pod that the controller runs in.")
	fs.StringVar(&o.SandboxKubeconfig, "sandbox-kubeconfig", o.SandboxKubeconfig, "File with the address of and the credentials for the API server of Sandboxes. Empty: it is reached through the cluster.")
	fs.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS, "Requests per second that each client limits itself to. 0 or less: no limit; API Priority and Fairness of the servers applies.")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst, "Requests that each client may make at once if --kube-api-qps sets a limit.")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Work only while holding a Lease, so that of several replicas one is active.")
	fs.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace, "Namespace of the Lease. Empty: the namespace of the Pod that the controller runs in.")
	fs.StringVar(&o.ClusterDomain, "cluster-domain", o.ClusterDomain, "DNS domain of the cluster, the end of the names in status.serviceFQDN.")
	fs.IntVar(&o.SandboxConcurrentWorkers, "sandbox-concurrent-workers", o.SandboxConcurrentWorkers, "Number of Sandboxes that are reconciled at the same time.")
	fs.BoolVar(&o.DisableSandboxEvents, "disable-sandbox-events", o.DisableSandboxEvents, "Record no events about the life of Sandboxes.")
	o.Extensions.addFlags(fs)
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, `Address that serves /metrics, without encryption or authentication. "0" turns it off.`)
	fs.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress, `Address that serves /healthz and /readyz. "0" turns it off.`)
	logsapi.AddFlags(o.Logging, fs)
}

// Complete fills in what the flags leave to the environment.
func (o *Options) Complete() error {
	if !o.LeaderElect || o.LeaderElectionNamespace != "" {
		return nil
	}
	namespace, err := os.ReadFile(o.namespaceFile)
	if err != nil {
		return fmt.Errorf("outside of a cluster --leader-election-namespace is needed, or --leader-elect=false: %w", err)
	}
	o.LeaderElectionNamespace = strings.TrimSpace(string(namespace))
	return nil
}

// Validate returns all that is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	if o.KubeAPIBurst <= 0 {
		errs = append(errs, fmt.Errorf("--kube-api-burst must be greater than 0, not %d", o.KubeAPIBurst))
	}
	if o.SandboxConcurrentWorkers <= 0 {
		errs = append(errs, fmt.Errorf("--sandbox-concurrent-workers must be greater than 0, not %d", o.SandboxConcurrentWorkers))
	}
	for _, problem := range validation.IsDNS1123Subdomain(o.ClusterDomain) {
		errs = append(errs, fmt.Errorf("--cluster-domain %q: %s", o.ClusterDomain, problem))
	}
	if o.LeaderElect {
		for _, problem := range validation.IsDNS1123Label(o.LeaderElectionNamespace) {
			errs = append(errs, fmt.Errorf("--leader-election-namespace %q: %s", o.LeaderElectionNamespace, problem))
		}
	}
	errs = append(errs, o.Extensions.validate(), validateAddress("--metrics-bind-address", o.MetricsBindAddress), validateAddress("--health-probe-bind-address", o.HealthProbeBindAddress))
	return errors.Join(errs...)
}

func validateAddress(flag, address string) error {
	if address == Disabled {
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%s %q is neither host:port nor %q: %w", flag, address, Disabled, err)
	}
	return nil
}

// KubeConfig returns the client configuration for the cluster.
func (o *Options) KubeConfig() (*rest.Config, error) {
	return o.clientConfig(o.Kubeconfig)
}

// SandboxConfig returns the client configuration for the API server of Sandboxes.
func (o *Options) SandboxConfig() (*rest.Config, error) {
	if o.SandboxKubeconfig == "" {
		return o.KubeConfig()
	}
	return o.clientConfig(o.SandboxKubeconfig)
}

func (o *Options) clientConfig(kubeconfig string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if kubeconfig == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("loading client configuration %q: %w", kubeconfig, err)
	}
	config.QPS = o.KubeAPIQPS
	if o.KubeAPIQPS <= 0 {
		// 0 would mean client-go's default limit.
		config.QPS = -1
	}
	config.Burst = o.KubeAPIBurst
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return rest.AddUserAgent(config, "sandbox-controller"), nil
}
