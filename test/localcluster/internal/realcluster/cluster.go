package realcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/build"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/controlplane"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/filelock"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/fsys"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/kube"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/poll"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/progress"
)

const (
	lockTimeout  = 5 * time.Minute
	readyTimeout = 2 * time.Minute
	downTimeout  = time.Minute
	pollInterval = 50 * time.Millisecond
)

// group has its records in runDir: after a reboot there are none.
var group = process.Group{Records: filepath.Join(runDir, "processes"), Logs: statePath("log")}

// Up makes sure that the cluster runs, and writes its administrator's
// kubeconfig to a file.
func Up(ctx context.Context, report *progress.Reporter, binaries *build.Binaries, kubeconfig string) error {
	release, err := lock(ctx, report)
	if err != nil {
		return err
	}
	defer release()
	p := newPlan(binaries.Dirs)
	if err := healthy(ctx, p); err == nil {
		report.Line("the cluster is up")
		return writeKubeconfig(kubeconfig)
	} else if anythingLeft() {
		report.Line("replacing the cluster that is there: %v", err)
		if err := remove(ctx, report); err != nil {
			return err
		}
	}
	if err := start(ctx, report, p, binaries); err != nil {
		return err
	}
	return writeKubeconfig(kubeconfig)
}

// Down removes the cluster and all that it left on the machine. It is no error
// if there is none.
func Down(ctx context.Context, report *progress.Reporter) error {
	release, err := lock(ctx, report)
	if err != nil {
		return err
	}
	defer release()
	return remove(ctx, report)
}

// lock makes those who start and stop the cluster take turns.
func lock(ctx context.Context, report *progress.Reporter) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	err = report.Track("waiting for another localcluster", nil, func() error {
		release, err = filelock.Acquire(ctx, lockFile)
		return err
	})
	return release, err
}

// healthy returns nil if the running cluster is the planned one and works.
func healthy(ctx context.Context, p plan) error {
	want, err := p.fingerprint()
	if err != nil {
		return err
	}
	got, err := os.ReadFile(fingerprintFile)
	if err != nil {
		return errors.New("it did not start completely")
	}
	if string(got) != want {
		return errors.New("its configuration or its programs have changed")
	}
	for _, name := range p.names() {
		if !group.Running(name) {
			return fmt.Errorf("%s is not running", name)
		}
	}
	if _, err := net.InterfaceByName(hostLink); err != nil {
		return fmt.Errorf("link %s: %w", hostLink, err)
	}
	client, err := kube.NewClient(config().PKI(), config().Server())
	if err != nil {
		return err
	}
	if err := client.Ready(ctx); err != nil {
		return err
	}
	return client.Condition(ctx, nodeURL, "Ready")
}

const nodeURL = "/api/v1/nodes/" + nodeName

// anythingLeft reports whether there may be parts of a cluster.
func anythingLeft() bool {
	for _, path := range []string{stateDir, runDir, netnsFile} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return len(cgroupPIDs()) > 0
}

// start starts a cluster where there is none.
func start(ctx context.Context, report *progress.Reporter, p plan, binaries *build.Binaries) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %s", readyTimeout))
	defer cancel()
	if err := prepare(p, binaries); err != nil {
		return err
	}
	report.Line("node namespaces and certificates made")
	if err := startAll(p.First); err != nil {
		return err
	}
	if err := await(ctx, report, containerd, containerdReady); err != nil {
		return err
	}
	report.Line("containerd is ready")
	if err := loadStandardImages(ctx, report, binaries); err != nil {
		return err
	}
	client, err := kube.NewClient(config().PKI(), config().Server())
	if err != nil {
		return err
	}
	if err := await(ctx, report, controlplane.APIServer, func() error { return client.Ready(ctx) }); err != nil {
		return err
	}
	report.Line("kube-apiserver is ready")
	if err := startAll(p.Then); err != nil {
		return err
	}
	if err := controlplane.ApplyStorageClass(ctx, client); err != nil {
		return err
	}
	if err := awaitUsable(ctx, report, client); err != nil {
		return err
	}
	fingerprint, err := p.fingerprint()
	if err != nil {
		return err
	}
	return os.WriteFile(fingerprintFile, []byte(fingerprint), 0o644)
}

// awaitUsable waits until pods can be created and run.
func awaitUsable(ctx context.Context, report *progress.Reporter, client *kube.Client) error {
	if err := await(ctx, report, kubelet, func() error { return client.Condition(ctx, nodeURL, "Ready") }); err != nil {
		return err
	}
	report.Line("node %s is ready", nodeName)
	err := await(ctx, report, controlplane.ControllerManager, func() error {
		return client.Exists(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
	})
	if err != nil {
		return err
	}
	report.Line("default service account is there")
	return nil
}

// prepare makes everything but processes.
func prepare(p plan, binaries *build.Binaries) error {
	for _, dir := range []string{stateDir, runDir, binDir, filepath.Dir(config().AuditLog())} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for name, file := range binaries.All() {
		if err := fsys.Install(file, binary(name)); err != nil {
			return err
		}
	}
	if err := p.writeFiles(); err != nil {
		return err
	}
	if err := config().WritePKI(); err != nil {
		return err
	}
	return setUpNode()
}

// startAll starts processes without waiting for them to be ready.
func startAll(specs []process.Spec) error {
	for _, spec := range specs {
		pid, err := group.Start(spec)
		if err != nil {
			return err
		}
		if !onNode(spec.Name) {
			continue
		}
		if err := joinCgroup(pid); err != nil {
			return fmt.Errorf("move %s into the node's cgroup: %w", spec.Name, err)
		}
	}
	return nil
}

// await waits for a condition that one process is to bring about, for as long
// as all processes that were started run.
func await(ctx context.Context, report *progress.Reporter, name string, condition func() error) error {
	err := report.Track("waiting for "+name, nil, func() error {
		return poll.Until(ctx, pollInterval, func() error {
			if err := group.CheckRunning(group.Names()...); err != nil {
				return poll.Stop(err)
			}
			return condition()
		})
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w%s", name, err, group.Tail(name))
	}
	return nil
}

// remove ends all processes and removes all state. Nothing is ended gently,
// since nothing is kept.
func remove(ctx context.Context, report *progress.Reporter) error {
	ctx, cancel := context.WithTimeoutCause(ctx, downTimeout, fmt.Errorf("not down after %s", downTimeout))
	defer cancel()
	names := group.Names()
	// etcd last: its clients would fill their logs.
	slices.SortFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	for _, name := range names {
		if err := group.Kill(ctx, name); err != nil {
			return err
		}
	}
	err := poll.Until(ctx, pollInterval, func() error {
		if n := process.KillBelow(stateDir); n > 0 {
			return fmt.Errorf("%d processes are left", n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	report.Line("processes of the cluster ended")
	if err := tearDownNode(ctx); err != nil {
		return err
	}
	report.Line("node namespaces and cgroup removed")
	return errors.Join(os.RemoveAll(runDir), os.RemoveAll(stateDir))
}

// rank orders processes for their end.
func rank(name string) int {
	if name == controlplane.Etcd {
		return 1
	}
	return 0
}

// writeKubeconfig copies the administrator's kubeconfig to where the caller wants it.
func writeKubeconfig(to string) error {
	if to == "" {
		return nil
	}
	return fsys.CopyPrivate(filepath.Join(config().PKI(), "admin.kubeconfig"), to)
}
