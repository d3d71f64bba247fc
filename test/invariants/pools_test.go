// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/invariants/history"
)

// poolPlan is a pool, and its template, which has the same name.
type poolPlan struct {
	namespace, name string
	// replicas is the size while claims come, and rest the one in the end: what was taken need not all be made again.
	replicas, rest int32
	recreate       bool
	// late says that there is no template until the end: claims wait.
	late bool
}

// pools have the same names for two tenants.
var pools = []*poolPlan{
	{namespace: "tenant-a", name: "large", replicas: 200, rest: 20},
	{namespace: "tenant-a", name: "fresh", replicas: 50, rest: 10, recreate: true},
	{namespace: "tenant-a", name: "small", replicas: 5, rest: 5},
	{namespace: "tenant-a", name: "late", replicas: 2, rest: 2, late: true},
	{namespace: "tenant-b", name: "large", replicas: 200, rest: 20},
	{namespace: "tenant-b", name: "fresh", replicas: 50, rest: 10, recreate: true},
	{namespace: "tenant-b", name: "small", replicas: 5, rest: 5},
	{namespace: "tenant-b", name: "late", replicas: 2, rest: 2, late: true},
}

// poolsOf returns the pools that are late, or the others.
func poolsOf(late bool) []*poolPlan {
	return slices.DeleteFunc(slices.Clone(pools), func(plan *poolPlan) bool { return plan.late != late })
}

func (p *poolPlan) key() history.Key {
	return history.Key{Resource: history.Pools, Namespace: p.namespace, Name: p.name}
}

func (p *poolPlan) template() *extensionsv1beta1.SandboxTemplate {
	return framework.NewTemplate(p.name, func(template *extensionsv1beta1.SandboxTemplate) {
		template.Spec.EnvVarsInjectionPolicy = extensionsv1beta1.EnvVarsInjectionPolicyAllowed
	})
}

func (p *poolPlan) pool() *extensionsv1beta1.SandboxWarmPool {
	pool := framework.NewPool(p.name, p.name, p.replicas)
	if p.recreate {
		framework.Recreate(pool)
	}
	return pool
}

// operator owns the pools and templates, and changes them.
type operator struct {
	*load
	random *rand.Rand
	// edits counts the changes of templates.
	edits int
}

// create creates everything.
func (o *operator) create(t framework.T, kube kubernetes.Interface) {
	t.Helper()
	at := o.servers[0]
	for _, plan := range pools {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plan.namespace}}
		_, err := kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("creating namespace %s: %v", plan.namespace, err)
		}
		if !plan.late {
			if _, err := at.templates(plan.namespace).Create(t.Context(), plan.template(), metav1.CreateOptions{}); err != nil {
				t.Fatalf("creating template %s/%s: %v", plan.namespace, plan.name, err)
			}
		}
		if _, err := at.pools(plan.namespace).Create(t.Context(), plan.pool(), metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating pool %s/%s: %v", plan.namespace, plan.name, err)
		}
	}
}

// run changes something every now and then until ctx ends. What fails is not done again: something else comes soon.
func (o *operator) run(ctx context.Context) {
	changing := poolsOf(false)
	for ctx.Err() == nil {
		plan := changing[o.random.IntN(len(changing))]
		o.hot.Store(changing[o.random.IntN(len(changing))])
		at := o.servers[o.random.IntN(len(o.servers))]
		switch o.random.IntN(12) {
		case 0, 1, 2:
			_ = o.scale(ctx, at, plan, o.random.Int32N(plan.replicas+1))
		case 3:
			_ = o.scale(ctx, at, plan, 0)
		case 4, 5:
			_ = o.scale(ctx, at, plan, plan.replicas)
		case 6, 7:
			_ = o.edit(ctx, at, plan)
		case 8:
			_ = o.replace(ctx, at, plan)
		}
		pause(ctx, time.Duration(500+o.random.IntN(1000))*time.Millisecond)
	}
}

func (o *operator) scale(ctx context.Context, at *server, plan *poolPlan, replicas int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := at.pools(plan.namespace).Patch(ctx, plan.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// edit changes a template: half of the time in a way that makes members stale.
func (o *operator) edit(ctx context.Context, at *server, plan *poolPlan) error {
	o.edits++
	patch := fmt.Appendf(nil, `{"spec":{"podTemplate":{"metadata":{"labels":{"edit":"%d"}}}}}`, o.edits)
	if o.random.IntN(2) == 0 {
		patch = fmt.Appendf(nil, `{"spec":{"podTemplate":{"spec":{"hostname":"edit-%d"}}}}`, o.edits)
	}
	_, err := at.templates(plan.namespace).Patch(ctx, plan.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// replace deletes a pool and creates another of the same name.
func (o *operator) replace(ctx context.Context, at *server, plan *poolPlan) error {
	if err := at.pools(plan.namespace).Delete(ctx, plan.name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	pause(ctx, time.Duration(o.random.IntN(2000))*time.Millisecond)
	_, err := at.pools(plan.namespace).Create(ctx, plan.pool(), metav1.CreateOptions{})
	return err
}

// finish makes a pool what it is to be in the end, wherever it is.
func (o *operator) finish(ctx context.Context, at *server, plan *poolPlan) error {
	if plan.late {
		_, err := at.templates(plan.namespace).Create(ctx, plan.template(), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	_, err := at.pools(plan.namespace).Create(ctx, plan.pool(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return o.scale(ctx, at, plan, plan.rest)
}
