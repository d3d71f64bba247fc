// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"
)

// handlerChain is the type of genericapiserver.Config's BuildHandlerChainFunc.
type handlerChain = func(apiHandler http.Handler, config *genericapiserver.Config) http.Handler

// judgeTokensBefore returns the chain with a handler before it that authenticates requests with tokens. If kube-apiserver could not be
// asked about a token it answers 503. The library's handler, which cannot be told why it knows nobody, would answer 401, and a client
// would take a good token for a bad one.
func judgeTokensBefore(chain handlerChain) handlerChain {
	return func(apiHandler http.Handler, config *genericapiserver.Config) http.Handler {
		authenticate := config.Authentication.Authenticator
		if authenticate == nil {
			return chain(apiHandler, config)
		}
		judged := *config
		judged.Authentication.Authenticator = authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
			if j, ok := req.Context().Value(judgementKey{}).(judgement); ok {
				return j.response, j.ok, j.err
			}
			return authenticate.AuthenticateRequest(req)
		})
		handler := chain(apiHandler, &judged)
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if !hasToken(req) {
				handler.ServeHTTP(w, req)
				return
			}
			j := judge(req, authenticate, config.Authentication.APIAudiences)
			if !j.ok && isUndecided(j.err) {
				klog.FromContext(req.Context()).Error(j.err, "A token cannot be judged")
				refuse(w, req, config.Serializer, "kube-apiserver does not say whose token this is")
				return
			}
			handler.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), judgementKey{}, j)))
		})
	}
}

// judgement is the result of authenticating a request.
type judgement struct {
	response *authenticator.Response
	ok       bool
	err      error
}

type judgementKey struct{}

// judge authenticates the request for the given audiences, as the library's handler would.
func judge(req *http.Request, authenticate authenticator.Request, audiences authenticator.Audiences) judgement {
	if len(audiences) != 0 {
		req = req.WithContext(authenticator.WithAudiences(req.Context(), audiences))
	}
	response, ok, err := authenticate.AuthenticateRequest(req)
	return judgement{response, ok, err}
}

// hasToken reports whether the request may have a token in it, in either of the headers that are looked at. What the front proxy passes
// on has none.
func hasToken(req *http.Request) bool {
	return req.Header.Get("Authorization") != "" || req.Header.Get("Sec-Websocket-Protocol") != ""
}

// isUndecided reports whether an authenticator returned the error because it got no answer. That somebody else's credentials are bad, or
// that those of another kind are, is an answer.
func isUndecided(err error) bool {
	var parts utilerrors.Aggregate
	if errors.As(err, &parts) {
		return slices.ContainsFunc(parts.Errors(), isUndecided)
	}
	var (
		refusal apierrors.APIStatus
		network net.Error
	)
	return errors.As(err, &refusal) || errors.As(err, &network) || errors.Is(err, context.Canceled)
}
