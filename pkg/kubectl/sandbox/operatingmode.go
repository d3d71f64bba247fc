// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/scheme"
	agentsclient "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/agents/v1beta1"
)

// defaultWaitTimeout leaves room for a Pod's usual grace period of 30 s when it is suspended, and for a volume to be attached
// elsewhere when it is resumed.
const defaultWaitTimeout = 2 * time.Minute

// modeOptions are the options of the commands that change the operating mode of Sandboxes: suspend and resume.
type modeOptions struct {
	genericiooptions.IOStreams
	printFlags *genericclioptions.PrintFlags

	// request asks the server for the change, and returns the Sandbox after it.
	request func(context.Context, agentsclient.SandboxInterface, string, metav1.CreateOptions) (*v1beta1.Sandbox, error)
	goal    goal
	wait    bool
	timeout time.Duration

	names     []string
	dryRun    cmdutil.DryRunStrategy
	printer   printers.ResourcePrinter
	client    versioned.Interface
	namespace string
}

// newModeOptions returns the options that suspend and resume have in common. Operation is what has been done, as in "suspended".
func newModeOptions(streams genericiooptions.IOStreams, operation string, goal goal) *modeOptions {
	return &modeOptions{
		IOStreams:  streams,
		printFlags: genericclioptions.NewPrintFlags(operation).WithTypeSetter(scheme.Scheme),
		goal:       goal,
		timeout:    defaultWaitTimeout,
	}
}

// equip gives a command its flags, and has it make the change.
func (o *modeOptions) equip(cmd *cobra.Command, config genericclioptions.RESTClientGetter, waitUsage string) {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.complete(config, cmd, args); err != nil {
			return err
		}
		return o.run(cmd.Context())
	}
	o.printFlags.AddFlags(cmd)
	cmdutil.AddDryRunFlag(cmd)
	cmd.Flags().BoolVar(&o.wait, "wait", o.wait, waitUsage)
	cmd.Flags().DurationVar(&o.timeout, "timeout", o.timeout,
		"The length of time to wait before giving up, zero means never. Any other values should contain a corresponding time unit (e.g. 1s, 2m, 3h).")
}

func (o *modeOptions) complete(config genericclioptions.RESTClientGetter, cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmdutil.UsageErrorf(cmd, "at least one sandbox name must be specified")
	}
	if o.timeout < 0 {
		return cmdutil.UsageErrorf(cmd, "--timeout must not be negative")
	}
	o.names = args
	var err error
	if o.dryRun, err = cmdutil.GetDryRunStrategy(cmd); err != nil {
		return err
	}
	cmdutil.PrintFlagsWithDryRunStrategy(o.printFlags, o.dryRun)
	if o.printer, err = o.printFlags.ToPrinter(); err != nil {
		return err
	}
	o.client, o.namespace, err = connect(config)
	return err
}

// run changes all Sandboxes before it waits for the first, so that they change at the same time. The timeout is for all together.
func (o *modeOptions) run(ctx context.Context) error {
	var changed []*v1beta1.Sandbox
	var errs []error
	for _, name := range o.names {
		sandbox, err := o.change(ctx, name)
		if err == nil {
			err = o.printer.PrintObj(sandbox, o.Out)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		changed = append(changed, sandbox)
	}
	if o.wait && o.dryRun == cmdutil.DryRunNone {
		ctx, cancel := withTimeout(ctx, o.timeout)
		defer cancel()
		for _, sandbox := range changed {
			if err := waitFor(ctx, o.client, sandbox, o.goal); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return utilerrors.NewAggregate(errs)
}

// change asks the server for the change. A client-side dry run only makes sure that there is a Sandbox to change.
func (o *modeOptions) change(ctx context.Context, name string) (*v1beta1.Sandbox, error) {
	sandboxes := o.client.AgentsV1beta1().Sandboxes(o.namespace)
	if name == "" {
		return nil, errors.New("sandbox name may not be empty")
	}
	if o.dryRun == cmdutil.DryRunClient {
		return sandboxes.Get(ctx, name, metav1.GetOptions{})
	}
	var options metav1.CreateOptions
	if o.dryRun == cmdutil.DryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return o.request(ctx, sandboxes, name, options)
}
