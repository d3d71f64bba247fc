// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
)

const (
	// binDirVariable names the environment variable that replaces the directory of the programs.
	binDirVariable = "SANDBOX_BIN_DIR"
	// lowPort and highPort bound the ports of the light cluster, which takes portsPerCluster of them. They lie above those of the
	// integration tests, which may run at the same time.
	lowPort, highPort, portsPerCluster = 32000, 32700, 16
	// logTail is how much of each log is shown after a failure.
	logTail = 16 << 10
)

// environment is the cluster under test.
type environment struct {
	kubeconfig string
	config     *rest.Config
	kube       kubernetes.Interface
	agents     versioned.Interface
	// ours says that this project serves the API, to be told by the suspend subresource, which nobody else has.
	ours   bool
	report report
}

func connect(kubeconfig string) (*environment, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// Tests are not to be slowed down by their own client.
	config.QPS = -1
	e := &environment{kubeconfig: kubeconfig, config: config}
	if e.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if e.agents, err = versioned.NewForConfig(config); err != nil {
		return nil, err
	}
	resources, err := e.kube.Discovery().ServerResourcesForGroupVersion(v1beta1.SchemeGroupVersion.String())
	if err != nil {
		return nil, fmt.Errorf("asking for the resources of %s: %w", v1beta1.SchemeGroupVersion, err)
	}
	e.ours = slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "sandboxes/suspend" })
	return e, nil
}

// program returns the file of a program of this project, or of kubectl.
func program(name string) string {
	dir := os.Getenv(binDirVariable)
	if dir == "" {
		// A test runs in the directory of its package.
		dir = filepath.Join("..", "..", "_output", "bin")
	}
	return filepath.Join(dir, name)
}

// lightCluster is a cluster of simulated nodes with both programs of the project beside it.
type lightCluster struct {
	dir string
	// reaper removes the cluster as soon as this process closes its standard input, or ends in whatever way.
	reaper      *exec.Cmd
	reaperInput io.Closer
}

func startLightCluster(ctx context.Context) (*lightCluster, error) {
	localcluster, err := filepath.Abs(program("localcluster"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(localcluster); err != nil {
		return nil, fmt.Errorf("run \"make test-integration\", which builds the programs, or set %s to their directory: %w", binDirVariable, err)
	}
	dir, err := os.MkdirTemp("", "sandbox-compat-")
	if err != nil {
		return nil, err
	}
	c := &lightCluster{dir: dir}
	if err := c.startReaper(localcluster); err != nil {
		return nil, err
	}
	port := freePorts()
	commands := [][]string{{"up", "light", "--dir", dir, "--port", strconv.Itoa(port), "--kubeconfig", c.kubeconfig()}}
	for _, name := range []string{"sandbox-apiserver", "sandbox-controller"} {
		commands = append(commands, []string{"start", name, "--dir", dir, "--bin", program(name)})
	}
	for _, args := range commands {
		if output, err := exec.CommandContext(ctx, localcluster, args...).CombinedOutput(); err != nil {
			c.remove(true)
			return nil, fmt.Errorf("localcluster %v: %w\n%s", args, err, output)
		}
	}
	return c, nil
}

// freePorts returns the first of a block of ports that no other cluster has.
func freePorts() int {
	for {
		port := lowPort + rand.IntN((highPort-lowPort)/portsPerCluster)*portsPerCluster
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil && listener.Close() == nil {
			return port
		}
	}
}

// startReaper starts what removes the cluster. A deferred call would not be made after a timeout of go test.
func (c *lightCluster) startReaper(localcluster string) error {
	const script = `cat >/dev/null; "$0" down light --dir "$1" >/dev/null 2>&1; rm -rf "$1"`
	c.reaper = exec.Command("sh", "-c", script, localcluster, c.dir)
	// An interrupt at the terminal is meant for the tests; the reaper has its work to do then.
	c.reaper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := c.reaper.StdinPipe()
	if err != nil {
		return err
	}
	c.reaperInput = input
	return c.reaper.Start()
}

// remove removes the cluster, waits until it is gone, and returns an exit code.
func (c *lightCluster) remove(withLogs bool) int {
	if withLogs {
		c.printLogs(os.Stderr)
	}
	if err := c.reaperInput.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "compat tests: removing the cluster:", err)
		return 1
	}
	if err := c.reaper.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "compat tests: removing the cluster:", err)
		return 1
	}
	return 0
}

func (c *lightCluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// printLogs writes the end of the logs of the project's programs.
func (c *lightCluster) printLogs(to io.Writer) {
	logs, err := filepath.Glob(filepath.Join(c.dir, "log", "sandbox-*.log"))
	if err != nil {
		fmt.Fprintln(to, err)
	}
	for _, file := range logs {
		data, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(to, err)
			continue
		}
		fmt.Fprintf(to, "--- end of %s\n%s\n", filepath.Base(file), bytes.ToValidUTF8(data[max(0, len(data)-logTail):], nil))
	}
}
