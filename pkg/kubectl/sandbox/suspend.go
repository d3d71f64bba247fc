// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	agentsclient "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/typed/agents/v1beta1"
)

func newSuspendCommand(config genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	o := newModeOptions(streams, "suspended", suspended)
	o.request = suspend
	cmd := &cobra.Command{
		Use:                   "suspend NAME... [--wait] [--timeout=DURATION]",
		DisableFlagsInUseLine: true,
		Short:                 "Suspend sandboxes",
		Long: templates.LongDesc(`
			Suspend sandboxes.

			The pod of a suspended sandbox is deleted; its volumes and its name are kept for when it is resumed.`),
		Example: templates.Examples(`
			# Suspend the sandbox mysandbox
			kubectl sandbox suspend mysandbox

			# Suspend two sandboxes and wait until their pods are gone
			kubectl sandbox suspend mysandbox yoursandbox --wait

			# Ask the server whether it would suspend the sandbox
			kubectl sandbox suspend mysandbox --dry-run=server`),
	}
	o.equip(cmd, config, "If true, wait until the pods of the sandboxes are gone.")
	return cmd
}

func suspend(ctx context.Context, c agentsclient.SandboxInterface, name string, options metav1.CreateOptions) (*v1beta1.Sandbox, error) {
	return c.Suspend(ctx, name, &v1beta1.SandboxSuspend{}, options)
}
