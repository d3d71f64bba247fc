// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
)

const (
	// binDirVariable names the environment variable that replaces the directory of the programs under test.
	binDirVariable    = "SANDBOX_BIN_DIR"
	sandboxAPIServer  = "sandbox-apiserver"
	sandboxController = "sandbox-controller"
	apiServiceName    = "v1beta1.agents.x-k8s.io"
	// portsPerCluster is at least the number of consecutive ports that localcluster takes.
	portsPerCluster = 16
	// logTail is how much of each log is shown after a failure.
	logTail = 16 << 10
)

// environment is a light cluster with both programs of the project.
type environment struct {
	binDir, dir string
	// reaper removes the cluster as soon as this process closes its standard input, or ends in whatever way.
	reaper      *exec.Cmd
	reaperInput io.Closer

	config   *rest.Config
	kube     kubernetes.Interface
	agents   versioned.Interface
	metadata metadata.Interface
}

// newEnvironment returns an environment whose cluster is not started yet. It fails if a program is missing.
func newEnvironment() (*environment, error) {
	binDir := os.Getenv(binDirVariable)
	if binDir == "" {
		// A test runs in the directory of its package.
		binDir = filepath.Join("..", "..", "_output", "bin")
	}
	binDir, err := filepath.Abs(binDir)
	if err != nil {
		return nil, err
	}
	var missing []error
	for _, program := range []string{"localcluster", "kubectl", "kubectl-sandbox", sandboxAPIServer, sandboxController} {
		if _, err := os.Stat(filepath.Join(binDir, program)); err != nil {
			missing = append(missing, err)
		}
	}
	if len(missing) != 0 {
		return nil, fmt.Errorf("programs are missing; run \"make test-integration\", which builds them, or set %s to their directory: %w",
			binDirVariable, errors.Join(missing...))
	}
	dir, err := os.MkdirTemp("", "sandbox-it-")
	if err != nil {
		return nil, err
	}
	e := &environment{binDir: binDir, dir: dir}
	return e, e.startReaper()
}

// startReaper starts what removes the cluster. A deferred call would not be made after a timeout of go test.
func (e *environment) startReaper() error {
	const script = `cat >/dev/null; "$0" down light --dir "$1" >/dev/null 2>&1; rm -rf "$1"`
	e.reaper = exec.Command("sh", "-c", script, e.program("localcluster"), e.dir)
	// An interrupt at the terminal is meant for the tests; the reaper has its work to do then.
	e.reaper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := e.reaper.StdinPipe()
	if err != nil {
		return err
	}
	e.reaperInput = input
	return e.reaper.Start()
}

// remove removes the cluster and waits until it is gone.
func (e *environment) remove() {
	if err := errors.Join(e.reaperInput.Close(), e.reaper.Wait()); err != nil {
		fmt.Fprintln(os.Stderr, "integration tests: removing the cluster:", err)
	}
}

// start starts the cluster and both programs, and returns when the API is available.
func (e *environment) start(ctx context.Context) error {
	port, err := freePorts(portsPerCluster)
	if err != nil {
		return err
	}
	if err := e.localcluster(ctx, "up", "light", "--dir", e.dir, "--port", strconv.Itoa(port), "--kubeconfig", e.kubeconfig()); err != nil {
		return err
	}
	if err := e.connect(); err != nil {
		return err
	}
	for _, program := range []string{sandboxAPIServer, sandboxController} {
		if err := e.startProgram(ctx, program); err != nil {
			return err
		}
	}
	return e.checkAvailable(ctx)
}

func (e *environment) connect() (err error) {
	e.config, err = clientcmd.BuildConfigFromFlags("", e.kubeconfig())
	if err != nil {
		return err
	}
	// Tests are not to be slowed down by their own client.
	e.config.QPS = -1
	var errs [3]error
	e.kube, errs[0] = kubernetes.NewForConfig(e.config)
	e.agents, errs[1] = versioned.NewForConfig(e.config)
	e.metadata, errs[2] = metadata.NewForConfig(e.config)
	return errors.Join(errs[:]...)
}

// checkAvailable returns an error if kube-apiserver does not pass requests on to sandbox-apiserver.
func (e *environment) checkAvailable(ctx context.Context) error {
	client, err := aggregator.NewForConfig(e.config)
	if err != nil {
		return err
	}
	service, err := client.ApiregistrationV1().APIServices().Get(ctx, apiServiceName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range service.Status.Conditions {
		if condition.Type == apiregistrationv1.Available && condition.Status == apiregistrationv1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("APIService %s is not available: %+v", apiServiceName, service.Status.Conditions)
}

// startProgram starts one of the project's programs and returns when it is ready.
func (e *environment) startProgram(ctx context.Context, name string) error {
	return e.localcluster(ctx, "start", name, "--dir", e.dir, "--bin", e.program(name))
}

// killProgram ends one of the project's programs with SIGKILL and returns when it is gone.
func (e *environment) killProgram(ctx context.Context, name string) error {
	return e.localcluster(ctx, "stop", name, "--dir", e.dir, "--kill")
}

func (e *environment) localcluster(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, e.program("localcluster"), args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("localcluster %v: %w\n%s", args, err, output.String())
	}
	return nil
}

// etcd returns a client of the etcd inside sandbox-apiserver, which the caller closes.
func (e *environment) etcd() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(e.dir, "sandbox-etcd", "client.sock")}})
}

// auditLog is the file in which kube-apiserver records every request that it has answered.
func (e *environment) auditLog() string { return filepath.Join(e.dir, "audit", "audit.log") }

func (e *environment) kubeconfig() string { return filepath.Join(e.dir, "kubeconfig") }

func (e *environment) program(name string) string { return filepath.Join(e.binDir, name) }

// printLogs writes the end of the log of each process.
func (e *environment) printLogs(to io.Writer) {
	logs, err := filepath.Glob(filepath.Join(e.dir, "log", "*.log"))
	if err != nil {
		fmt.Fprintln(to, err)
	}
	for _, file := range logs {
		data, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(to, err)
			continue
		}
		fmt.Fprintf(to, "--- end of %s\n%s\n", filepath.Base(file), data[max(0, len(data)-logTail):])
	}
}

// freePorts returns the first of n consecutive TCP ports of the loopback interface that nobody listens on. They lie below those
// that the system gives to outgoing connections.
func freePorts(n int) (int, error) {
	const low, high, attempts = 18000, 32000, 100
	for range attempts {
		first := low + rand.IntN(high-low-n)
		if portsAreFree(first, n) {
			return first, nil
		}
	}
	return 0, fmt.Errorf("no %d consecutive free ports between %d and %d", n, low, high)
}

func portsAreFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		if err := listener.Close(); err != nil {
			return false
		}
	}
	return true
}
