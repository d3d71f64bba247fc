// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// DefaultServiceAccount is the path of the account without which no pod is admitted.
const DefaultServiceAccount = "/api/v1/namespaces/default/serviceaccounts/default"

// Client sends requests as the cluster's administrator.
type Client struct {
	http   *http.Client
	server string
}

// NewClient makes a client from admin.crt, admin.key and ca.crt of a directory.
func NewClient(dir, server string) (*Client, error) {
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "admin.crt"), filepath.Join(dir, "admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}},
		ForceAttemptHTTP2: true,
	}
	return &Client{&http.Client{Transport: transport, Timeout: 5 * time.Second}, server}, nil
}

// statusError is an answer other than success.
type statusError struct {
	request, status, body string
	code                  int
}

func (e *statusError) Error() string { return fmt.Sprintf("%s: %s: %s", e.request, e.status, e.body) }

// IsNotFound tells whether a server answered that there is nothing at the path
// that it was asked for.
func IsNotFound(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && status.code == http.StatusNotFound
}

// Ready returns nil if the API server serves.
func (c *Client) Ready(ctx context.Context) error {
	return c.do(ctx, http.MethodGet, "/readyz", "", nil, nil)
}

// Exists returns nil if there is an object at a path.
func (c *Client) Exists(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodGet, path, "", nil, nil)
}

// Condition returns nil if the object at a path has a status condition that is true.
func (c *Client) Condition(ctx context.Context, path, kind string) error {
	var object struct {
		Status struct {
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
	if err := c.do(ctx, http.MethodGet, path, "", nil, &object); err != nil {
		return err
	}
	for _, cond := range object.Status.Conditions {
		if cond.Type != kind {
			continue
		}
		if cond.Status == "True" {
			return nil
		}
		return fmt.Errorf("%s: condition %s is %s: %s: %s", path, kind, cond.Status, cond.Reason, cond.Message)
	}
	return fmt.Errorf("%s: no condition %s yet", path, kind)
}

// Apply creates or changes the object at a path so that it has the fields of a
// manifest, by server-side apply.
func (c *Client) Apply(ctx context.Context, path string, manifest []byte) error {
	const query = "?fieldManager=localcluster&force=true"
	return c.do(ctx, http.MethodPatch, path+query, "application/apply-patch+yaml", manifest, nil)
}

// ApplyAll applies the manifests of a map from paths.
func (c *Client) ApplyAll(ctx context.Context, manifests map[string]string) error {
	for path, manifest := range manifests {
		if err := c.Apply(ctx, path, []byte(manifest)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode/100 != 2 {
		return &statusError{method + " " + path, resp.Status, string(bytes.TrimSpace(data)), resp.StatusCode}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}
