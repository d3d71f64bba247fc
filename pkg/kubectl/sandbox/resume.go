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

func newResumeCommand(config genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	o := newModeOptions(streams, "resumed", ready)
	o.request = resume
	cmd := &cobra.Command{
		Use:                   "resume NAME... [--wait] [--timeout=DURATION]",
		DisableFlagsInUseLine: true,
		Short:                 "Resume suspended sandboxes",
		Long: templates.LongDesc(`
			Resume suspended sandboxes.

			A resumed sandbox gets a new pod with the volumes and the name that it had before.`),
		Example: templates.Examples(`
			# Resume the sandbox mysandbox
			kubectl sandbox resume mysandbox

			# Resume a sandbox and wait up to five minutes until it is ready
			kubectl sandbox resume mysandbox --wait --timeout=5m`),
	}
	o.equip(cmd, config, "If true, wait until the sandboxes are ready.")
	return cmd
}

func resume(ctx context.Context, c agentsclient.SandboxInterface, name string, options metav1.CreateOptions) (*v1beta1.Sandbox, error) {
	return c.Resume(ctx, name, &v1beta1.SandboxResume{}, options)
}
