// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/streaming/pkg/httpstream"
	utilexec "k8s.io/utils/exec"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	agentsclient "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/agents/v1beta1"
)

func TestExecArguments(t *testing.T) {
	type parsed struct {
		Name, Container   string
		Command           []string
		Stdin, TTY, Quiet bool
		Wait              time.Duration
	}
	tests := []struct {
		args    string
		want    parsed
		wantErr string
	}{
		{args: "box -- date", want: parsed{Name: "box", Command: []string{"date"}}},
		{args: "box -it -c main -- ls -t /usr", want: parsed{
			Name: "box", Container: "main", Command: []string{"ls", "-t", "/usr"}, Stdin: true, TTY: true,
		}},
		{args: "-q -i box -- cat -- -i", want: parsed{Name: "box", Command: []string{"cat", "--", "-i"}, Stdin: true, Quiet: true}},
		{args: "box --wait -- date", want: parsed{Name: "box", Command: []string{"date"}, Wait: 2 * time.Minute}},
		{args: "box --wait=5s -- date", want: parsed{Name: "box", Command: []string{"date"}, Wait: 5 * time.Second}},
		{args: "", wantErr: "sandbox name must be specified"},
		{args: "-- date", wantErr: "sandbox name must be specified"},
		{args: "box", wantErr: "you must specify at least one command for the container"},
		{args: "box --", wantErr: "you must specify at least one command for the container"},
		{args: "box date", wantErr: "exec NAME COMMAND is not supported. Use exec NAME -- COMMAND instead"},
		{args: "box other -- date", wantErr: "exec NAME COMMAND is not supported. Use exec NAME -- COMMAND instead"},
		{args: "box --wait=0 -- date", wantErr: "--wait must be higher than zero"},
		{args: "box --wait=-1s -- date", wantErr: "--wait must be higher than zero"},
		{args: "box --wait=soon -- date", wantErr: `invalid argument "soon" for "--wait" flag`},
	}
	for _, tc := range tests {
		t.Run(tc.args, func(t *testing.T) {
			o := &execOptions{}
			cmd := execCommand(genericclioptions.NewConfigFlags(false), o)
			cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.parse(cmd, args, cmd.ArgsLenAtDash()) }
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(strings.Fields(tc.args))

			err := cmd.ExecuteContext(t.Context())
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error = %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := parsed{o.name, o.ContainerName, o.command, o.Stdin, o.TTY, o.Quiet, o.wait}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

// fakeExecutor records what it is asked for and ends with err.
type fakeExecutor struct {
	location *url.URL
	options  remotecommand.StreamOptions
	err      error
}

func (f *fakeExecutor) Stream(options remotecommand.StreamOptions) error {
	return f.StreamWithContext(context.Background(), options)
}

func (f *fakeExecutor) StreamWithContext(_ context.Context, options remotecommand.StreamOptions) error {
	f.options = options
	return f.err
}

// runExec runs exec in the Sandbox ns/box with executor in place of the network.
func runExec(t *testing.T, executor *fakeExecutor, mutate func(*execOptions)) (stderr string, err error) {
	t.Helper()
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	config := &rest.Config{Host: "https://server"}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	o := &execOptions{
		StreamOptions: kubectlexec.StreamOptions{IOStreams: streams, Namespace: "ns"},
		name:          "box",
		command:       []string{"sh", "-c", "a&b=c"},
		client:        client,
		config:        config,
		newExecutor: func(_ *rest.Config, location *url.URL) (remotecommand.Executor, error) {
			executor.location = location
			return executor, nil
		},
	}
	mutate(o)
	err = o.run(t.Context())
	return errOut.String(), err
}

func TestExecRequest(t *testing.T) {
	tests := []struct {
		name       string
		mutate     func(*execOptions)
		wantQuery  url.Values
		wantStdin  bool
		wantStderr string
	}{
		{
			name:      "output only",
			mutate:    func(*execOptions) {},
			wantQuery: url.Values{"command": {"sh", "-c", "a&b=c"}, "stdout": {"true"}, "stderr": {"true"}},
		},
		{
			name:      "stdin and container",
			mutate:    func(o *execOptions) { o.Stdin, o.ContainerName = true, "main" },
			wantQuery: url.Values{"command": {"sh", "-c", "a&b=c"}, "container": {"main"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}},
			wantStdin: true,
		},
		{
			name:       "terminal asked for without one",
			mutate:     func(o *execOptions) { o.Stdin, o.TTY = true, true },
			wantQuery:  url.Values{"command": {"sh", "-c", "a&b=c"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}},
			wantStdin:  true,
			wantStderr: "Unable to use a TTY - input is not a terminal or the right kind of file\n",
		},
		{
			name:      "terminal asked for without stdin",
			mutate:    func(o *execOptions) { o.TTY = true },
			wantQuery: url.Values{"command": {"sh", "-c", "a&b=c"}, "stdout": {"true"}, "stderr": {"true"}},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			executor := &fakeExecutor{}
			stderr, err := runExec(t, executor, tc.mutate)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := executor.location.Path, "/apis/agents.x-k8s.io/v1beta1/namespaces/ns/sandboxes/box/exec"; got != want {
				t.Errorf("path = %q, want %q", got, want)
			}
			if diff := cmp.Diff(tc.wantQuery, executor.location.Query()); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
			if got := executor.options.Stdin != nil; got != tc.wantStdin {
				t.Errorf("stdin passed = %t, want %t", got, tc.wantStdin)
			}
			if executor.options.Tty {
				t.Error("a terminal was asked for without one at hand")
			}
			if stderr != tc.wantStderr {
				t.Errorf("stderr = %q, want %q", stderr, tc.wantStderr)
			}
		})
	}
}

func conflict(retryAfterSeconds int32) error {
	err := apierrors.NewConflict(v1beta1.Resource("sandboxes"), "box", errors.New("no pod"))
	err.ErrStatus.Details.RetryAfterSeconds = retryAfterSeconds
	return &httpstream.UpgradeFailureError{Cause: err}
}

func TestExecErrors(t *testing.T) {
	const refused = `Operation cannot be fulfilled on sandboxes.agents.x-k8s.io "box": no pod`
	tests := []struct {
		name       string
		err        error
		wantErr    string
		wantCode   int
		wantStatus metav1.StatusReason
	}{
		{
			name:     "exit code of the command",
			err:      exec.CodeExitError{Err: errors.New("command terminated with exit code 7"), Code: 7},
			wantErr:  "command terminated with exit code 7",
			wantCode: 7,
		},
		{name: "refused for good", err: conflict(0), wantErr: refused, wantStatus: metav1.StatusReasonConflict},
		{
			name:       "refused until the pod runs",
			err:        conflict(1),
			wantErr:    refused + "; use --wait to wait until it is ready",
			wantStatus: metav1.StatusReasonConflict,
		},
		{name: "connection broken", err: errors.New("broken"), wantErr: "broken"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := runExec(t, &fakeExecutor{err: tc.err}, func(*execOptions) {})
			if err == nil || err.Error() != tc.wantErr {
				t.Errorf("error = %v, want %q", err, tc.wantErr)
			}
			var code int
			//nolint:errorlint // CheckErr too looks at the error itself, not at what it wraps.
			if exit, ok := err.(utilexec.ExitError); ok {
				code = exit.ExitStatus()
			}
			if code != tc.wantCode {
				t.Errorf("exit code = %d, want %d", code, tc.wantCode)
			}
			if got := apierrors.ReasonForError(err); got != tc.wantStatus {
				t.Errorf("reason = %q, want %q", got, tc.wantStatus)
			}
		})
	}
}

func TestShouldFallBack(t *testing.T) {
	refused := func(err error) error { return &httpstream.UpgradeFailureError{Cause: err} }
	resource := v1beta1.Resource("sandboxes")
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{name: "no upgrade", err: refused(errors.New("bad handshake")), want: true},
		{name: "proxy that speaks TLS", err: errors.New("proxy: unknown scheme: https"), want: true},
		{name: "verb of WebSocket forbidden", err: refused(apierrors.NewForbidden(resource, "box", nil)), want: true},
		{name: "bad request", err: refused(apierrors.NewBadRequest("what is this")), want: true},
		{name: "state of the sandbox", err: refused(apierrors.NewConflict(resource, "box", errors.New("suspended")))},
		{name: "no such sandbox", err: refused(apierrors.NewNotFound(resource, "box"))},
		{name: "too many streams", err: refused(apierrors.NewTooManyRequests("full", 1))},
		{name: "connection broken", err: errors.New("broken")},
		{name: "exit code", err: exec.CodeExitError{Err: errors.New("exit"), Code: 1}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := shouldFallBack(tc.err); got != tc.want {
				t.Errorf("shouldFallBack = %t, want %t", got, tc.want)
			}
		})
	}
}

// sandboxClient reads Sandboxes from one client and builds requests with another, which the fake cannot.
type sandboxClient struct {
	versioned.Interface
	sandboxes agentsclient.SandboxesGetter
}

func (c sandboxClient) AgentsV1beta1() agentsclient.AgentsV1beta1Interface {
	return sandboxGroup{c.Interface.AgentsV1beta1(), c.sandboxes}
}

type sandboxGroup struct {
	agentsclient.AgentsV1beta1Interface
	sandboxes agentsclient.SandboxesGetter
}

func (g sandboxGroup) Sandboxes(namespace string) agentsclient.SandboxInterface {
	return g.sandboxes.Sandboxes(namespace)
}

func TestExecWaitsUntilReady(t *testing.T) {
	tests := []struct {
		name    string
		sandbox *v1beta1.Sandbox
		wantErr string
	}{
		{name: "ready", sandbox: newSandbox(v1beta1.SandboxOperatingModeRunning, condition("Ready", metav1.ConditionTrue, 2))},
		{
			name:    "suspended",
			sandbox: newSandbox(v1beta1.SandboxOperatingModeSuspended),
			wantErr: `use "kubectl sandbox resume box" first`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			executor := &fakeExecutor{}
			_, err := runExec(t, executor, func(o *execOptions) {
				o.wait = time.Minute
				o.client = sandboxClient{o.client, newClient(t, tc.sandbox).AgentsV1beta1()}
			})
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error = %v, want %q", err, tc.wantErr)
			}
			if ran := executor.location != nil; ran != (tc.wantErr == "") {
				t.Errorf("the command ran = %t", ran)
			}
		})
	}
}

func TestTerminalWithoutSize(t *testing.T) {
	if got := (terminalSizes{}).Next(); got != nil {
		t.Errorf("size = %v, want none", got)
	}
}
