// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"
)

const (
	// authoritiesPatience is how long the server waits for them before it listens.
	authoritiesPatience = 10 * time.Second
	// authoritiesPeriod is how often it looks.
	authoritiesPeriod = 10 * time.Millisecond
)

var (
	errFrontProxyUnknown = errors.New("the certificate authority of the front proxy is not known yet")
	errClientsUnknown    = errors.New("the certificate authority of clients is not known yet")
)

// authorities vouch for the certificates by which the server tells who asks. They come from a ConfigMap of the main cluster. Whoever is
// passed on by the front proxy before they have come would be taken for anonymous, and whoever has a certificate of his own would be
// told that it is bad.
type authorities struct {
	// frontProxy is nil if there is no front proxy.
	frontProxy *authenticatorfactory.RequestHeaderConfig
	// clients is nil if there is none to wait for.
	clients dynamiccertificates.CAContentProvider
}

var _ healthz.HealthChecker = authorities{}

// Name implements healthz.HealthChecker.
func (authorities) Name() string { return "authentication" }

// Check implements healthz.HealthChecker: it tells whether the server can judge certificates.
func (a authorities) Check(*http.Request) error {
	if proxy := a.frontProxy; proxy != nil && (!known(proxy.CAContentProvider) || len(proxy.UsernameHeaders.Value()) == 0) {
		return errFrontProxyUnknown
	}
	if a.clients != nil && !known(a.clients) {
		return errClientsUnknown
	}
	return nil
}

func known(authority dynamiccertificates.CAContentProvider) bool {
	return len(authority.CurrentCABundleContent()) != 0
}

// protect answers all requests but probes with 503 until certificates can be judged. It must be the outermost handler.
func (a authorities) protect(handler http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := a.Check(req); err != nil && !isProbe(req.URL.Path) {
			refuse(w, req, serializer, "the server is starting: "+err.Error())
			return
		}
		handler.ServeHTTP(w, req)
	})
}

// isProbe reports whether the kubelet asks for the path, without saying who it is.
func isProbe(path string) bool {
	root, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{"livez", "readyz", "healthz"}, root)
}

// refuse answers with 503, and has the client connect anew before it asks again: TLS told it at the handshake which authorities the
// server knew, and if its own was not among them it has shown no certificate.
func refuse(w http.ResponseWriter, req *http.Request, serializer runtime.NegotiatedSerializer, message string) {
	err := apierrors.NewServiceUnavailable(message)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	w.Header().Set("Connection", "close")
	responsewriters.ErrorNegotiated(err, serializer, schema.GroupVersion{Version: "v1"}, w, req)
}

// FollowAuthorities begins to follow the certificate authorities, until ctx ends. It is to be called once, and what it returns before the
// server listens, as the server itself would follow them from then on only: TLS tells clients at the handshake which authorities the server
// knows, and the certificate of another is not shown, for as long as the connection lasts.
//
// The returned function waits until the authorities are known. After ten seconds it gives up, because probes want to be answered; other
// requests are refused until the authorities come.
func (c *Config) FollowAuthorities(ctx context.Context) (await func()) {
	if serving := c.GenericConfig.SecureServing; serving != nil {
		if controller, ok := serving.ClientCA.(dynamiccertificates.ControllerRunner); ok {
			go controller.Run(ctx, 1)
			serving.ClientCA = followed{serving.ClientCA}
		}
	}
	a := c.authorities()
	return func() {
		err := wait.PollUntilContextTimeout(ctx, authoritiesPeriod, authoritiesPatience, true, func(context.Context) (bool, error) {
			return a.Check(nil) == nil, nil
		})
		if err != nil {
			klog.FromContext(ctx).Error(a.Check(nil), "Requests are refused until it is known who asks")
		}
	}
}

// followed is an authority that is followed already. The library would begin again if it could.
type followed struct {
	dynamiccertificates.CAContentProvider
}

func (c *Config) authorities() authorities {
	return authorities{frontProxy: c.GenericConfig.Authentication.RequestHeaderConfig, clients: c.ClientCA}
}

// knowWhoAsks keeps the server from being ready, and from answering, while it cannot tell who asks.
func (c *Config) knowWhoAsks() {
	a := c.authorities()
	c.GenericConfig.AddReadyzChecks(a)
	chain := judgeTokensBefore(c.GenericConfig.BuildHandlerChainFunc)
	c.GenericConfig.BuildHandlerChainFunc = func(apiHandler http.Handler, config *genericapiserver.Config) http.Handler {
		return a.protect(chain(apiHandler, config), config.Serializer)
	}
}
