// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster has what both kinds of local cluster do alike: compare what
// runs with what should run, start processes and wait for them.
package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/poll"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/progress"
)

// Limits for a start and a removal. They are far above what is usual, for
// machines that are busy with something else.
const (
	LockTimeout  = 5 * time.Minute
	ReadyTimeout = 2 * time.Minute
	DownTimeout  = time.Minute

	pollInterval = 50 * time.Millisecond
)

// Plan is all that determines a cluster. It is a function of the program's
// arguments and of the components' versions, so that two plans can be compared.
type Plan struct {
	// Binaries maps components to versions.
	Binaries map[string]string
	// Files maps names of configuration files to their contents.
	Files map[string]string
	// First are started at once, Then when the API server is ready.
	First, Then []process.Spec
	// Objects maps paths of the API to manifests that are applied.
	Objects map[string]string
}

// Fingerprint identifies a plan.
func (p Plan) Fingerprint() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // There is nothing in a plan that cannot be encoded.
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Processes names the processes in the order in which they are started.
func (p Plan) Processes() []string {
	var names []string
	for _, s := range slices.Concat(p.First, p.Then) {
		names = append(names, s.Name)
	}
	return names
}

// WriteFiles writes the configuration.
func (p Plan) WriteFiles() error {
	for name, content := range p.Files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Cluster is a cluster's processes and the record of its completed start.
type Cluster struct {
	Group process.Group
	// FingerprintFile has the fingerprint of the plan that was carried out.
	FingerprintFile string
	Report          *progress.Reporter
}

// Completed returns nil if a plan was carried out and all of its processes run.
func (c Cluster) Completed(p Plan) error {
	got, err := os.ReadFile(c.FingerprintFile)
	if err != nil {
		return errors.New("it did not start completely")
	}
	if string(got) != p.Fingerprint() {
		return errors.New("its configuration or its programs have changed")
	}
	for _, name := range p.Processes() {
		if !c.Group.Running(name) {
			return fmt.Errorf("%s is not running", name)
		}
	}
	return nil
}

// Complete records that a plan was carried out.
func (c Cluster) Complete(p Plan) error {
	return os.WriteFile(c.FingerprintFile, []byte(p.Fingerprint()), 0o644)
}

// Await waits for a condition that one process is to bring about, for as long
// as all processes that were started run.
func (c Cluster) Await(ctx context.Context, name string, condition func() error) error {
	return c.await(ctx, name, c.Group.Names(), condition)
}

// AwaitAlone is like Await, but does not mind if other processes have ended.
func (c Cluster) AwaitAlone(ctx context.Context, name string, condition func() error) error {
	return c.await(ctx, name, []string{name}, condition)
}

func (c Cluster) await(ctx context.Context, name string, needed []string, condition func() error) error {
	err := c.Report.Track("waiting for "+name, nil, func() error {
		return poll.Until(ctx, pollInterval, func() error {
			if err := c.Group.CheckRunning(needed...); err != nil {
				return poll.Stop(err)
			}
			return condition()
		})
	})
	switch {
	case err == nil:
		return nil
	case c.Group.Running(name):
		return fmt.Errorf("waiting for %s: %w%s", name, err, c.Group.Tail(name))
	default: // The error has the end of its log already.
		return fmt.Errorf("waiting for %s: %w", name, err)
	}
}

// KillAll kills all recorded processes; last is killed last.
func (c Cluster) KillAll(ctx context.Context, last string) error {
	names := c.Group.Names()
	if i := slices.Index(names, last); i >= 0 {
		names = append(slices.Delete(names, i, i+1), last)
	}
	for _, name := range names {
		if err := c.Group.Kill(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
