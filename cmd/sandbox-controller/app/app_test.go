// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/metrics"

	"github.com/sandbox-apiserver/sandbox-apiserver/cmd/sandbox-controller/app/options"
)

func TestReadyStandingByOrWithFullCaches(t *testing.T) {
	for name, test := range map[string]struct {
		leading, synced bool
		want            int
	}{
		"standing by, caches empty": {false, false, http.StatusOK},
		"leading, caches empty":     {true, false, http.StatusInternalServerError},
		"leading, caches full":      {true, true, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			var leading atomic.Bool
			leading.Store(test.leading)
			handler := healthHandler(leaderelection.NewLeaderHealthzAdaptor(healthGrace), &leading, func() bool { return test.synced })
			for path, want := range map[string]int{"/readyz": test.want, "/healthz": http.StatusOK} {
				response := httptest.NewRecorder()
				handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
				if response.Code != want {
					t.Errorf("%s answers %d, want %d", path, response.Code, want)
				}
			}
		})
	}
}

func TestLeaseIsHeldUntilTheWorkIsDoneAndThenReleased(t *testing.T) {
	client := fake.NewClientset()
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "ns", leaseName, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: "me"})
	if err != nil {
		t.Fatal(err)
	}
	holder := func() string {
		lease, err := client.CoordinationV1().Leases("ns").Get(context.Background(), leaseName, metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	ctx, terminate := context.WithCancel(t.Context())
	var atEnd string
	err = runAsLeader(ctx, lock, leaderelection.NewLeaderHealthzAdaptor(healthGrace), func(working context.Context) {
		terminate()
		<-working.Done()
		atEnd = holder()
	})
	if err != nil {
		t.Errorf("unexpected error: %v", err)
	}
	if atEnd != "me" {
		t.Errorf("while the last work was done the lease belonged to %q", atEnd)
	}
	if got := holder(); got != "" {
		t.Errorf("the lease still belongs to %q", got)
	}
}

func TestMetricsNameTheBuild(t *testing.T) {
	gauge := newBuildInfo()
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(gauge)
	setBuildInfo(gauge)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	var names []string
	for _, label := range families[0].GetMetric()[0].GetLabel() {
		names = append(names, label.GetName())
	}
	want := []string{"build_date", "compiler", "git_commit", "git_version", "go_version", "platform"}
	if families[0].GetName() != "agent_sandbox_build_info" || !slices.Equal(names, want) {
		t.Errorf("%s has the labels %v", families[0].GetName(), names)
	}
}

func TestServeTellsThatThePortIsInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if err := serve(t.Context(), listener.Addr().String(), http.NotFoundHandler()); err == nil {
		t.Error("no error")
	}
	if err := serve(t.Context(), options.Disabled, nil); err != nil {
		t.Errorf("a disabled listener: %v", err)
	}
}

func TestServeAnswersUntilTheEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := serve(ctx, address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "here" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestWrongFlagsEndTheCommandBeforeItConnects(t *testing.T) {
	cmd := NewCommand()
	cmd.SetArgs([]string{"--leader-elect=false", "--sandbox-concurrent-workers=0"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "--sandbox-concurrent-workers") {
		t.Errorf("error is %v", err)
	}
}
