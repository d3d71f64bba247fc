// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestFlagsHaveTheNamesAndDefaultsThatManifestsRelyOn(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	New().AddFlags(fs)
	want := map[string]string{
		"kubeconfig": "", "sandbox-kubeconfig": "",
		"kube-api-qps": "-1", "kube-api-burst": "10",
		"leader-elect": "true", "leader-election-namespace": "",
		"cluster-domain": "cluster.local", "sandbox-concurrent-workers": "100", "disable-sandbox-events": "false",
		"extensions": "true", "sandbox-claim-concurrent-workers": "50", "sandbox-warm-pool-concurrent-workers": "1",
		"sandbox-template-concurrent-workers": "1", "sandbox-claim-warm-candidate-grace-period": "2s", "disable-claim-events": "false",
		"allowed-label-domains-file": "", "sandbox-warm-pool-max-batch-size": "300", "sandbox-warm-pool-replenish-delay": "0s",
		"sandbox-warm-pool-max-refill-rate": "0", "sandbox-warm-pool-readiness-grace-period": "5m0s",
		"sandbox-warm-pool-unschedulable-recheck-interval": "1m0s", "enable-warm-pool-eviction": "true",
		"metrics-bind-address": ":8080", "health-probe-bind-address": ":8081",
	}
	got := map[string]string{}
	for name := range want {
		if flag := fs.Lookup(name); flag != nil {
			got[name] = flag.DefValue
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags differ (-want +got):\n%s", diff)
	}
	if fs.Lookup("v") == nil {
		t.Error("the logging flags are missing")
	}
}

func TestValidateNamesTheFlagThatIsWrong(t *testing.T) {
	valid := func() *Options {
		o := New()
		o.LeaderElectionNamespace = "agent-sandbox-system"
		return o
	}
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"defaults":               {change: func(*Options) {}},
		"listeners off":          {change: func(o *Options) { o.MetricsBindAddress, o.HealthProbeBindAddress = "0", "0" }},
		"no election, namespace": {change: func(o *Options) { o.LeaderElect, o.LeaderElectionNamespace = false, "" }},
		"no workers":             {change: func(o *Options) { o.SandboxConcurrentWorkers = 0 }, want: "--sandbox-concurrent-workers"},
		"no burst":               {change: func(o *Options) { o.KubeAPIBurst = 0 }, want: "--kube-api-burst"},
		"domain with a dot":      {change: func(o *Options) { o.ClusterDomain = ".local" }, want: "--cluster-domain"},
		"election, no namespace": {change: func(o *Options) { o.LeaderElectionNamespace = "" }, want: "--leader-election-namespace"},
		"no claim workers":       {change: func(o *Options) { o.Extensions.ClaimConcurrentWorkers = 0 }, want: "--sandbox-claim-concurrent-workers"},
		"no pool workers":        {change: func(o *Options) { o.Extensions.WarmPoolConcurrentWorkers = 0 }, want: "--sandbox-warm-pool-concurrent-workers"},
		"no template workers":    {change: func(o *Options) { o.Extensions.TemplateConcurrentWorkers = -1 }, want: "--sandbox-template-concurrent-workers"},
		"empty batches":          {change: func(o *Options) { o.Extensions.WarmPoolMaxBatchSize = 0 }, want: "--sandbox-warm-pool-max-batch-size"},
		"no grace":               {change: func(o *Options) { o.Extensions.WarmPoolReadinessGracePeriod = 0 }, want: "--sandbox-warm-pool-readiness-grace-period"},
		"no recheck":             {change: func(o *Options) { o.Extensions.WarmPoolUnschedulableRecheckInterval = 0 }, want: "--sandbox-warm-pool-unschedulable-recheck-interval"},
		"delay in the past":      {change: func(o *Options) { o.Extensions.WarmPoolReplenishDelay = -1 }, want: "--sandbox-warm-pool-replenish-delay"},
		"claims do not wait":     {change: func(o *Options) { o.Extensions.ClaimWarmCandidateGracePeriod = 0 }},
		"wait in the past":       {change: func(o *Options) { o.Extensions.ClaimWarmCandidateGracePeriod = -1 }, want: "--sandbox-claim-warm-candidate-grace-period"},
		"endless rate":           {change: func(o *Options) { o.Extensions.WarmPoolMaxRefillRate = math.Inf(1) }, want: "--sandbox-warm-pool-max-refill-rate"},
		"no rate":                {change: func(o *Options) { o.Extensions.WarmPoolMaxRefillRate = math.NaN() }, want: "--sandbox-warm-pool-max-refill-rate"},
		"metrics without port":   {change: func(o *Options) { o.MetricsBindAddress = "localhost" }, want: "--metrics-bind-address"},
		"health without port":    {change: func(o *Options) { o.HealthProbeBindAddress = "" }, want: "--health-probe-bind-address"},
	} {
		t.Run(name, func(t *testing.T) {
			o := valid()
			test.change(o)
			err := o.Validate()
			if test.want == "" && err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Fatalf("error %v does not name %s", err, test.want)
			}
		})
	}
}

func TestCompleteTakesTheNamespaceOfThePod(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if err := os.WriteFile(file, []byte("agent-sandbox-system\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := New()
	o.namespaceFile = file
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	if o.LeaderElectionNamespace != "agent-sandbox-system" {
		t.Errorf("namespace is %q", o.LeaderElectionNamespace)
	}
}

func TestCompleteFailsOutsideOfAClusterWithoutANamespace(t *testing.T) {
	o := New()
	o.namespaceFile = filepath.Join(t.TempDir(), "missing")
	if err := o.Complete(); err == nil || !strings.Contains(err.Error(), "--leader-election-namespace") {
		t.Errorf("error %v does not name the flag", err)
	}
}

func TestSandboxConfigFallsBackToTheCluster(t *testing.T) {
	write := func(name, server string) string {
		file := filepath.Join(t.TempDir(), name)
		content := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"` + server + `"}}]}`
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	o := New()
	o.Kubeconfig = write("cluster", "https://cluster.example")
	for sandboxKubeconfig, want := range map[string]string{
		"": "https://cluster.example",
		write("sandboxes", "https://sandboxes.example"): "https://sandboxes.example",
	} {
		o.SandboxKubeconfig = sandboxKubeconfig
		config, err := o.SandboxConfig()
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != want || config.QPS != -1 {
			t.Errorf("with %q: host %q, QPS %v", sandboxKubeconfig, config.Host, config.QPS)
		}
	}
}
