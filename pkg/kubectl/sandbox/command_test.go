// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
)

// execute runs the command line against a server and returns what it printed.
func execute(t *testing.T, server http.Handler, args ...string) (stdout string, err error) {
	t.Helper()
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	s := httptest.NewServer(server)
	defer s.Close()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd := NewCommand(streams)
	cmd.SetArgs(append(args, "--server="+s.URL))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// sandboxServer answers requests for a Sandbox with one of its name, except for "missing", which there is none of. It records them.
type sandboxServer struct{ requests []string }

func (s *sandboxServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.requests = append(s.requests, req.Method+" "+req.URL.RequestURI())
	name := path.Base(req.URL.Path)
	if name == "suspend" || name == "resume" {
		name = path.Base(path.Dir(req.URL.Path))
	}
	w.Header().Set("Content-Type", "application/json")
	if name == "missing" {
		status := apierrors.NewNotFound(v1beta1.Resource("sandboxes"), name).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	_ = json.NewEncoder(w).Encode(v1beta1.Sandbox{
		TypeMeta:   metav1.TypeMeta{APIVersion: "agents.x-k8s.io/v1beta1", Kind: "Sandbox"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
	})
}

func TestSuspendAndResume(t *testing.T) {
	const base = "/apis/agents.x-k8s.io/v1beta1/namespaces/ns/sandboxes/"
	tests := []struct {
		args         string
		wantRequests []string
		wantOut      string
		wantErr      string
	}{
		{
			args:         "suspend box",
			wantRequests: []string{"POST " + base + "box/suspend"},
			wantOut:      "sandbox.agents.x-k8s.io/box suspended\n",
		},
		{
			args:         "resume one two",
			wantRequests: []string{"POST " + base + "one/resume", "POST " + base + "two/resume"},
			wantOut:      "sandbox.agents.x-k8s.io/one resumed\nsandbox.agents.x-k8s.io/two resumed\n",
		},
		{
			args:         "suspend missing box",
			wantRequests: []string{"POST " + base + "missing/suspend", "POST " + base + "box/suspend"},
			wantOut:      "sandbox.agents.x-k8s.io/box suspended\n",
			wantErr:      `sandboxes.agents.x-k8s.io "missing" not found`,
		},
		{
			args:         "suspend box --dry-run=server --wait",
			wantRequests: []string{"POST " + base + "box/suspend?dryRun=All"},
			wantOut:      "sandbox.agents.x-k8s.io/box suspended (server dry run)\n",
		},
		{
			args:         "resume box --dry-run=client",
			wantRequests: []string{"GET " + base + "box"},
			wantOut:      "sandbox.agents.x-k8s.io/box resumed (dry run)\n",
		},
		{
			args:         "resume box -o name",
			wantRequests: []string{"POST " + base + "box/resume"},
			wantOut:      "sandbox.agents.x-k8s.io/box\n",
		},
		{args: "suspend", wantErr: "at least one sandbox name must be specified\nSee 'kubectl sandbox suspend -h' for help and examples"},
		{args: "resume box --timeout=-1s", wantErr: "--timeout must not be negative"},
		{args: "resume box --dry-run=nonsense", wantErr: "Invalid dry-run value (nonsense)"},
		{args: "resume box --nonsense", wantErr: "unknown flag: --nonsense\nSee 'kubectl sandbox resume --help' for usage."},
		{args: "nonsense", wantErr: `unknown command "nonsense" for "kubectl sandbox"`},
	}
	for _, tc := range tests {
		t.Run(tc.args, func(t *testing.T) {
			server := &sandboxServer{}
			out, err := execute(t, server, append(strings.Fields(tc.args), "-n", "ns")...)
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error = %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.wantOut, out); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantRequests, server.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// waitServer answers the suspend and resume of a Sandbox, and a watch with the state given.
type waitServer struct{ watched v1beta1.Sandbox }

func (s *waitServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case req.Method == http.MethodPost:
		accepted := s.watched.DeepCopy()
		accepted.Status = v1beta1.SandboxStatus{}
		_ = json.NewEncoder(w).Encode(accepted)
	case req.URL.Query().Get("fieldSelector") != "metadata.name=box":
		http.Error(w, "wait for more than the one sandbox", http.StatusForbidden)
	case req.URL.Query().Get("watch") == "":
		_ = json.NewEncoder(w).Encode(v1beta1.SandboxList{
			TypeMeta: metav1.TypeMeta{APIVersion: "agents.x-k8s.io/v1beta1", Kind: "SandboxList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items:    []v1beta1.Sandbox{s.watched},
		})
	default:
		s.watch(w, req)
	}
}

func (s *waitServer) watch(w http.ResponseWriter, req *http.Request) {
	object, _ := json.Marshal(s.watched)
	fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object)
	fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",`+
		`"metadata":{"resourceVersion":"2","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
	w.(http.Flusher).Flush()
	<-req.Context().Done()
}

func TestSuspendAndResumeWait(t *testing.T) {
	const run, halt = v1beta1.SandboxOperatingModeRunning, v1beta1.SandboxOperatingModeSuspended
	tests := []struct {
		name    string
		command string
		watched *v1beta1.Sandbox
		wantErr string
	}{
		{name: "suspended", command: "suspend", watched: newSandbox(halt, condition("Suspended", metav1.ConditionTrue, 2))},
		{name: "resumed", command: "resume", watched: newSandbox(run, condition("Ready", metav1.ConditionTrue, 2))},
		{
			name: "not ready in time", command: "resume", watched: newSandbox(run, condition("Ready", metav1.ConditionFalse, 2)),
			wantErr: "last reported Ready=False, reason SomeReason: some message",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tc.watched.TypeMeta = metav1.TypeMeta{APIVersion: "agents.x-k8s.io/v1beta1", Kind: "Sandbox"}
			tc.watched.ResourceVersion = "1"
			timeout := "--timeout=1m"
			if tc.wantErr != "" {
				timeout = "--timeout=1s"
			}
			_, err := execute(t, &waitServer{*tc.watched}, tc.command, "box", "-n", "ns", "--wait", timeout)
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error = %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func TestHelpNamesTheCommandAsTyped(t *testing.T) {
	for _, command := range []string{"exec", "suspend", "resume"} {
		var out bytes.Buffer
		cmd := NewCommand(genericiooptions.IOStreams{In: &out, Out: &out, ErrOut: &out})
		cmd.SetArgs([]string{command, "--help"})
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := "Usage:\n  kubectl sandbox " + command + " NAME"; !strings.Contains(out.String(), want) {
			t.Errorf("help of %s does not contain %q:\n%s", command, want, out.String())
		}
	}
}
