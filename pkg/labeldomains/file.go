// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package labeldomains

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// reloadInterval is how often a File is read. Reading a few lines is cheap, and tells of a change whatever way it was made: ConfigMap
// volumes swap a directory, which leaves the file's own time and size as they may have been before.
const reloadInterval = 5 * time.Second

// File is a List that follows a file. A file that is missing or has no entry stands for Default. It is safe for concurrent use.
type File struct {
	path  string
	clock clock.WithTicker

	mu        sync.RWMutex
	list      List
	listeners []func()
}

// NewFile reads the file, and returns an error if it is there and cannot be read. An empty path is a file that is never there.
func NewFile(path string) (*File, error) {
	list, err := read(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, clock: clock.RealClock{}, list: list}, nil
}

// Current returns the list as it was last read. Not to be changed.
func (f *File) Current() List {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.list
}

// OnChange makes Run call listener after each change of the list.
func (f *File) OnChange(listener func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, listener)
}

// Run follows the file until the context ends. While the file cannot be read the list stays as it was.
func (f *File) Run(ctx context.Context) {
	if f.path == "" {
		return
	}
	ticker := f.clock.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			f.reload(ctx)
		}
	}
}

func (f *File) reload(ctx context.Context) {
	list, err := read(f.path)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The allowed label domains stay as they were", "domains", f.Current())
		return
	}
	if slices.Equal(f.Current(), list) {
		return
	}
	klog.FromContext(ctx).Info("The allowed label domains have changed", "domains", list)
	for _, listener := range f.replace(list) {
		listener()
	}
}

// replace sets the list and returns whom to tell of it.
func (f *File) replace(list List) []func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = list
	return slices.Clone(f.listeners)
}

func read(path string) (List, error) {
	if path == "" {
		return Default, nil
	}
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Default, nil
	case err != nil:
		return nil, fmt.Errorf("reading the allowed label domains: %w", err)
	}
	return Parse(string(content)), nil
}
