// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/kubectl/pkg/util/term"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/scheme"
)

// execOptions are the options of exec.
type execOptions struct {
	kubectlexec.StreamOptions

	name    string
	command []string
	// wait is how long to wait for the Sandbox to be ready; 0 is not at all.
	wait time.Duration

	client versioned.Interface
	config *rest.Config
	// newExecutor is replaced in tests.
	newExecutor func(*rest.Config, *url.URL) (remotecommand.Executor, error)
}

func newExecCommand(config genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	return execCommand(config, &execOptions{StreamOptions: kubectlexec.StreamOptions{IOStreams: streams}, newExecutor: newExecutor})
}

func execCommand(config genericclioptions.RESTClientGetter, o *execOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "exec NAME [-c CONTAINER] [flags] -- COMMAND [args...]",
		DisableFlagsInUseLine: true,
		Short:                 "Execute a command in a sandbox",
		Long: templates.LongDesc(`
			Execute a command in a sandbox.

			The exit code is that of the command.`),
		Example: templates.Examples(`
			# Get output from running the 'date' command in the sandbox mysandbox
			kubectl sandbox exec mysandbox -- date

			# Switch to raw terminal mode; sends stdin to 'bash' and sends stdout/stderr from 'bash' back to the client
			kubectl sandbox exec mysandbox -i -t -- bash -il

			# Copy a file into the container ruby-container
			kubectl sandbox exec mysandbox -c ruby-container -i -- tee /tmp/input < input

			# Wait up to five minutes for the sandbox to be ready first
			kubectl sandbox exec mysandbox --wait=5m -- date`),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(cmd, args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			if err := o.connect(config); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.ContainerName, "container", "c", o.ContainerName,
		"Container name. If omitted, use the kubectl.kubernetes.io/default-container annotation of the pod, or its first container.")
	cmd.Flags().BoolVarP(&o.Stdin, "stdin", "i", o.Stdin, "Pass stdin to the container")
	cmd.Flags().BoolVarP(&o.TTY, "tty", "t", o.TTY, "Stdin is a TTY")
	cmd.Flags().BoolVarP(&o.Quiet, "quiet", "q", o.Quiet, "Only print output from the remote session")
	cmd.Flags().DurationVar(&o.wait, "wait", o.wait,
		"The length of time (like 5s, 2m, or 3h, higher than zero) to wait until the sandbox is ready. Without a value, "+defaultWaitTimeout.String()+".")
	cmd.Flags().Lookup("wait").NoOptDefVal = defaultWaitTimeout.String()
	return cmd
}

// parse takes the name and the command from the arguments, of which those from atDash on came after "--".
func (o *execOptions) parse(cmd *cobra.Command, args []string, atDash int) error {
	before := args
	if atDash >= 0 {
		before, o.command = args[:atDash], args[atDash:]
	}
	switch {
	case len(before) == 0 || before[0] == "":
		return cmdutil.UsageErrorf(cmd, "sandbox name must be specified")
	case len(before) > 1:
		return cmdutil.UsageErrorf(cmd, "exec NAME COMMAND is not supported. Use exec NAME -- COMMAND instead")
	case len(o.command) == 0:
		return cmdutil.UsageErrorf(cmd, "you must specify at least one command for the container")
	case o.wait < 0 || o.wait == 0 && cmd.Flags().Changed("wait"):
		return cmdutil.UsageErrorf(cmd, "--wait must be higher than zero")
	}
	o.name = before[0]
	return nil
}

func (o *execOptions) connect(config genericclioptions.RESTClientGetter) (err error) {
	if o.client, o.Namespace, err = connect(config); err != nil {
		return err
	}
	o.config, err = config.ToRESTConfig()
	return err
}

func (o *execOptions) run(ctx context.Context) error {
	if o.wait > 0 {
		if err := o.waitUntilReady(ctx); err != nil {
			return err
		}
	}
	tty := o.SetupTTY()
	var sizes remotecommand.TerminalSizeQueue
	if tty.Raw {
		sizes = terminalSizes{tty.MonitorSize(tty.GetSize())}
		// A terminal has one output.
		o.ErrOut = nil
	}
	location := o.client.AgentsV1beta1().RESTClient().Post().
		Namespace(o.Namespace).Resource("sandboxes").Name(o.name).SubResource("exec").
		VersionedParams(&v1beta1.SandboxExecOptions{
			Container: o.ContainerName,
			Command:   o.command,
			Stdin:     o.Stdin,
			Stdout:    o.Out != nil,
			Stderr:    o.ErrOut != nil,
			TTY:       tty.Raw,
		}, scheme.ParameterCodec)
	if err := location.Error(); err != nil {
		return err
	}
	executor, err := o.newExecutor(o.config, location.URL())
	if err != nil {
		return err
	}
	return explain(tty.Safe(func() error {
		return executor.StreamWithContext(ctx, remotecommand.StreamOptions{
			Stdin: o.In, Stdout: o.Out, Stderr: o.ErrOut, Tty: tty.Raw, TerminalSizeQueue: sizes,
		})
	}))
}

func (o *execOptions) waitUntilReady(ctx context.Context) error {
	ctx, cancel := withTimeout(ctx, o.wait)
	defer cancel()
	sandbox, err := o.client.AgentsV1beta1().Sandboxes(o.Namespace).Get(ctx, o.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return waitFor(ctx, o.client, sandbox, ready)
}

// newExecutor returns an executor that tries WebSocket first, and SPDY where a proxy or an old server knows no better.
func newExecutor(config *rest.Config, location *url.URL) (remotecommand.Executor, error) {
	// A WebSocket handshake must be a GET request (RFC 6455, section 4.1).
	webSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, location.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, location)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(webSocket, spdy, shouldFallBack)
}

// shouldFallBack says whether SPDY may succeed where WebSocket failed with err. It may not when the server understood the
// request and refused it for the state of the Sandbox; asking again would only replace the server's words by vaguer ones.
// Forbidden is another matter, for the two are authorized with different verbs.
func shouldFallBack(err error) bool {
	if status := refusal(err); status != nil {
		return !apierrors.IsConflict(status) && !apierrors.IsNotFound(status) && !apierrors.IsTooManyRequests(status)
	}
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

// refusal returns the Status with which the server answered a WebSocket handshake, or nil if err is no such answer.
func refusal(err error) *apierrors.StatusError {
	var failure *httpstream.UpgradeFailureError
	var status *apierrors.StatusError
	if errors.As(err, &failure) && errors.As(failure.Cause, &status) {
		return status
	}
	return nil
}

// explain returns err as kubectl prints it best: the server's answer without what was attempted, and with advice if waiting
// will help. Any other error, the exit code of the command included, is returned as it is.
func explain(err error) error {
	status := refusal(err)
	if status == nil {
		return err
	}
	if _, retry := apierrors.SuggestsClientDelay(status); retry && apierrors.IsConflict(status) {
		status = &apierrors.StatusError{ErrStatus: *status.ErrStatus.DeepCopy()}
		status.ErrStatus.Message += "; use --wait to wait until it is ready"
	}
	return status
}

// terminalSizes makes a queue of kubectl's one of client-go's.
type terminalSizes struct{ queue term.TerminalSizeQueue }

// Next implements remotecommand.TerminalSizeQueue.
func (s terminalSizes) Next() *remotecommand.TerminalSize {
	// Output that is no terminal has no size, and so no queue.
	if s.queue == nil {
		return nil
	}
	size := s.queue.Next()
	if size == nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
}
