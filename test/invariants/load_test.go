// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/scheme"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/invariants/history"
)

const (
	// workers is the number of clients.
	workers = 16
	// burst is how many requests may be sent at once after a lull: servers are to compete for the last members of a pool.
	burst = 60
	// attempts is how often a client asks again after an answer was lost.
	attempts = 20
	// mostWaiting is how many claims of each client may wait for what does not come before the end.
	mostWaiting = 3
	// longestLife is the most seconds that a claim has which expires.
	longestLife = 20
	// allowedLabel is a label that claims may have; refusedLabel is none.
	allowedLabel, refusedLabel = "sandbox.users.io/round", "other.example.com/round"
)

// load is what all clients share.
type load struct {
	servers  []*server
	recorder *recorder
	limiter  flowcontrol.RateLimiter
	// hot is the pool that most claims are for at the moment.
	hot atomic.Pointer[poolPlan]
	// fail is called with what is found wrong before the end.
	fail func(...history.Violation)

	mu      sync.Mutex
	answers []history.Answer
}

func (l *load) note(a history.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, a)
}

// unexpected reports an answer that no request of these clients may get.
func (l *load) unexpected(a history.Answer, err error) {
	l.fail(history.Violation{Rule: "UnexpectedAnswer", Text: fmt.Sprintf("%s: %v", a, err), Keys: []history.Key{a.Key}})
}

// worker is a client with claims of its own, which nobody else deletes.
type worker struct {
	*load
	name   string
	random *rand.Rand
	// claims counts the claims, and live has those that are there as far as the worker knows.
	claims int
	live   []liveClaim
	// waiting has those of them that cannot get a Sandbox until the end.
	waiting []liveClaim
}

type liveClaim struct {
	key history.Key
	uid types.UID
}

// operations are what workers do, and how often compared to each other.
var operations = []choice[func(*worker, context.Context)]{
	{24, (*worker).createNamed},
	{20, (*worker).createGenerated},
	{30, (*worker).createWaiting},
	{4, (*worker).createCold},
	{4, (*worker).createExpiring},
	{6, (*worker).createTwice},
	{4, (*worker).createDry},
	{2, (*worker).createRefused},
	{12, (*worker).delete},
	{8, (*worker).get},
	{8, (*worker).relabel},
	{1, (*worker).dismiss},
}

// run does one operation after the other until ctx ends. The last one is finished: what became of it must be known.
func (w *worker) run(ctx context.Context) {
	for w.limiter.Wait(ctx) == nil {
		choose(w.random, operations)(w, context.WithoutCancel(ctx))
	}
}

func (w *worker) anyServer() *server { return pick(w.random, w.servers) }

// anyPool returns the pool that everybody wants now, or sometimes another.
func (w *worker) anyPool() *poolPlan {
	if hot := w.hot.Load(); hot != nil && w.random.IntN(2) > 0 {
		return hot
	}
	return pick(w.random, poolsOf(false))
}

func (w *worker) nextName() string {
	w.claims++
	return fmt.Sprintf("%s-%d", w.name, w.claims)
}

// createNamed creates a claim, and asks again under the same name until it knows that there is one.
func (w *worker) createNamed(ctx context.Context) {
	w.keep(w.createUntilKnown(ctx, w.anyPool(), w.nextName()))
}

func (w *worker) createCold(ctx context.Context) {
	w.keep(w.createUntilKnown(ctx, w.anyPool(), w.nextName(), func(claim *extensionsv1beta1.SandboxClaim) {
		claim.Spec.Env = []extensionsv1beta1.EnvVar{{Name: "ROUND", Value: strconv.Itoa(w.claims)}}
	}))
}

// createExpiring creates a claim that is soon deleted by itself, and with it all that it has by then.
func (w *worker) createExpiring(ctx context.Context) {
	policies := []extensionsv1beta1.ClaimShutdownPolicy{
		extensionsv1beta1.ClaimShutdownPolicyDelete, extensionsv1beta1.ClaimShutdownPolicyDeleteForeground,
	}
	w.createUntilKnown(ctx, w.anyPool(), w.nextName(), func(claim *extensionsv1beta1.SandboxClaim) {
		claim.Spec.Lifecycle = &extensionsv1beta1.Lifecycle{
			ShutdownTime:   new(metav1.NewTime(time.Now().Add(time.Duration(1+w.random.IntN(longestLife)) * time.Second))),
			ShutdownPolicy: pick(w.random, policies),
		}
	})
}

// createWaiting creates a claim that has to wait, and deletes the one that has waited longest if there are many.
func (w *worker) createWaiting(ctx context.Context) {
	if claim, ok := w.createUntilKnown(ctx, pick(w.random, poolsOf(true)), w.nextName()); ok {
		w.waiting = append(w.waiting, claim)
	}
	if len(w.waiting) > mostWaiting {
		w.remove(ctx, w.waiting[0])
		w.waiting = w.waiting[1:]
	}
}

// keep adds a claim to those that are there.
func (w *worker) keep(claim liveClaim, ok bool) {
	if ok {
		w.live = append(w.live, claim)
	}
}

// createUntilKnown returns the claim, unless it could not find out whether there is one.
func (w *worker) createUntilKnown(ctx context.Context, pool *poolPlan, name string, options ...func(*extensionsv1beta1.SandboxClaim),
) (liveClaim, bool) {
	for attempt := range attempts {
		a := w.create(ctx, w.anyServer(), pool, framework.NewClaim(name, pool.name, options...), fmt.Sprintf("%s-%d", name, attempt))
		switch a.Code {
		case http.StatusCreated:
			return liveClaim{a.Key, a.Object.UID}, true
		case http.StatusConflict:
			return w.findOwn(ctx, a.Key)
		}
		pause(ctx, retryInterval)
	}
	return liveClaim{}, false
}

// findOwn reads a claim that an attempt of the worker made whose answer was lost.
func (w *worker) findOwn(ctx context.Context, key history.Key) (liveClaim, bool) {
	for range attempts {
		a := w.read(ctx, key, "")
		switch a.Code {
		case http.StatusOK:
			if !strings.HasPrefix(a.Object.Claim.Attempt, key.Name+"-") {
				w.unexpected(a, errors.New("the name is taken by a stranger's claim"))
			}
			return liveClaim{key, a.Object.UID}, true
		case http.StatusNotFound:
			return liveClaim{}, false
		}
		pause(ctx, retryInterval)
	}
	return liveClaim{}, false
}

// createGenerated lets the server choose the name, and does not ask again: the claim of a lost answer nobody knows.
func (w *worker) createGenerated(ctx context.Context) {
	name, pool := w.nextName(), w.anyPool()
	claim := framework.NewClaim("", pool.name)
	claim.GenerateName = name + "-"
	if a := w.create(ctx, w.anyServer(), pool, claim, name); a.Code == http.StatusCreated {
		w.live = append(w.live, liveClaim{a.Key, a.Object.UID})
	}
}

// createTwice creates a claim at two servers at the same time.
func (w *worker) createTwice(ctx context.Context) {
	name, pool := w.nextName(), w.anyPool()
	first, second := w.anyServer(), w.anyServer()
	var answers [2]history.Answer
	var both sync.WaitGroup
	both.Go(func() { answers[0] = w.create(ctx, first, pool, framework.NewClaim(name, pool.name), name+"-first") })
	both.Go(func() { answers[1] = w.create(ctx, second, pool, framework.NewClaim(name, pool.name), name+"-second") })
	both.Wait()
	created := 0
	for _, a := range answers {
		if a.Code == http.StatusCreated {
			created++
			w.live = append(w.live, liveClaim{a.Key, a.Object.UID})
		}
	}
	if created > 1 {
		w.unexpected(answers[1], errors.New("both servers made the claim"))
	}
}

func (w *worker) createDry(ctx context.Context) {
	name, pool := w.nextName(), w.anyPool()
	w.createWith(ctx, w.anyServer(), pool, framework.NewClaim(name, pool.name), name, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// createRefused asks for what is against the rules whatever is in the storage.
func (w *worker) createRefused(ctx context.Context) {
	name, pool := w.nextName(), w.anyPool()
	claim := framework.NewClaim(name, pool.name)
	claim.Spec.AdditionalPodMetadata.Labels = map[string]string{refusedLabel: "1"}
	if a := w.create(ctx, w.anyServer(), pool, claim, name); a.Code != http.StatusUnprocessableEntity && a.Code != history.Unknown {
		w.unexpected(a, errors.New("it must be refused"))
	}
}

func (w *worker) create(ctx context.Context, at *server, pool *poolPlan, claim *extensionsv1beta1.SandboxClaim, attempt string,
) history.Answer {
	return w.createWith(ctx, at, pool, claim, attempt, metav1.CreateOptions{})
}

func (w *worker) createWith(ctx context.Context, at *server, pool *poolPlan, claim *extensionsv1beta1.SandboxClaim, attempt string,
	options metav1.CreateOptions,
) history.Answer {
	claim.Annotations = map[string]string{history.AttemptAnnotation: attempt}
	a := history.Answer{
		Verb: history.Create, Server: at.name, Attempt: attempt,
		Key: history.Key{Resource: history.Claims, Namespace: pool.namespace, Name: claim.Name},
	}
	if len(options.DryRun) > 0 {
		a.Verb = history.DryRun
	}
	request := at.rest().Post().Namespace(pool.namespace).Resource(history.Claims).VersionedParams(&options, scheme.ParameterCodec).Body(claim)
	return w.send(ctx, request, a, http.StatusCreated, http.StatusConflict, http.StatusUnprocessableEntity)
}

// send sends a request once, notes the answer, and reports any whose code is none of the expected ones.
func (w *worker) send(ctx context.Context, request *rest.Request, a history.Answer, expected ...int) history.Answer {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	claim := &extensionsv1beta1.SandboxClaim{}
	// A client that asks again by itself would hide that an answer was lost.
	result := request.MaxRetries(0).Do(ctx).StatusCode(&a.Code)
	err := result.Error()
	var object runtime.Object
	if err == nil {
		object, err = result.Get()
	}
	if decoded, ok := object.(*extensionsv1beta1.SandboxClaim); ok {
		claim = decoded
		a.Key.Name, a.Object = claim.Name, history.Describe(claim)
		a.Revision, err = strconv.ParseInt(claim.ResourceVersion, 10, 64)
		if a.Verb == history.DryRun {
			err = nil // It has no version.
		}
	}
	if leavesOpen(err) {
		a.Code, a.Object = history.Unknown, nil
	} else if !slices.Contains(expected, a.Code) {
		w.unexpected(a, err)
	}
	w.note(a)
	return a
}

// leavesOpen says whether a request may have been done although it failed, or is only to be sent again.
func leavesOpen(err error) bool {
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) {
		return err != nil
	}
	switch code := status.Status().Code; code {
	case http.StatusTooManyRequests:
		return true
	case http.StatusUnauthorized:
		// A server that has just begun to listen may not know the certificate authority of clients yet.
		return true
	default:
		return code >= http.StatusInternalServerError
	}
}

// delete deletes any of the claims.
func (w *worker) delete(ctx context.Context) {
	if len(w.live) == 0 {
		return
	}
	i := w.random.IntN(len(w.live))
	w.remove(ctx, w.live[i])
	w.live = slices.Delete(w.live, i, i+1)
}

// remove deletes a claim, and asks again until it knows that it is gone.
func (w *worker) remove(ctx context.Context, claim liveClaim) {
	for range attempts {
		at := w.anyServer()
		request := at.rest().Delete().Namespace(claim.key.Namespace).Resource(history.Claims).Name(claim.key.Name).
			Body(metav1.NewPreconditionDeleteOptions(string(claim.uid)))
		a := history.Answer{Verb: history.Delete, Server: at.name, Key: claim.key, UID: claim.uid}
		if a = w.send(ctx, request, a, http.StatusOK, http.StatusNotFound); a.Code != history.Unknown {
			return
		}
		pause(ctx, retryInterval)
	}
}

func (w *worker) get(ctx context.Context) {
	if len(w.live) > 0 {
		claim := pick(w.random, w.live)
		w.read(ctx, claim.key, claim.uid)
	}
}

func (w *worker) read(ctx context.Context, key history.Key, uid types.UID) history.Answer {
	at := w.anyServer()
	request := at.rest().Get().Namespace(key.Namespace).Resource(history.Claims).Name(key.Name)
	return w.send(ctx, request, history.Answer{Verb: history.Get, Server: at.name, Key: key, UID: uid}, http.StatusOK, http.StatusNotFound)
}

// relabel changes what the Pod of a claim is to have.
func (w *worker) relabel(ctx context.Context) {
	if len(w.live) == 0 {
		return
	}
	claim := pick(w.random, w.live)
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"additionalPodMetadata": map[string]any{
		"labels": map[string]string{allowedLabel: strconv.Itoa(w.random.IntN(100))},
	}}})
	if err != nil {
		panic(err) // Of strings and maps of them.
	}
	at := w.anyServer()
	request := at.rest().Patch(types.MergePatchType).Namespace(claim.key.Namespace).Resource(history.Claims).Name(claim.key.Name).Body(patch)
	a := history.Answer{Verb: history.Get, Server: at.name, Key: claim.key, UID: claim.uid}
	w.send(ctx, request, a, http.StatusOK, http.StatusNotFound, http.StatusConflict)
}

// dismiss deletes the Sandbox of a claim that stays.
func (w *worker) dismiss(ctx context.Context) {
	if len(w.live) == 0 {
		return
	}
	claim := pick(w.random, w.live)
	a := w.read(ctx, claim.key, claim.uid)
	if a.Code != http.StatusOK || a.Object.Claim.Sandbox == "" {
		return
	}
	sandboxes := w.anyServer().Agents.AgentsV1beta1().Sandboxes(claim.key.Namespace)
	sandbox, err := sandboxes.Get(ctx, a.Object.Claim.Sandbox, metav1.GetOptions{})
	if err != nil {
		return
	}
	w.recorder.Dismiss(sandbox.UID)
	// That it is not deleted is right too.
	_ = sandboxes.Delete(ctx, sandbox.Name, *metav1.NewPreconditionDeleteOptions(string(sandbox.UID)))
}

// newLimiter returns what paces the clients.
func newLimiter() flowcontrol.RateLimiter {
	return flowcontrol.NewTokenBucketRateLimiter(float32(*rateFlag), burst)
}

// waitForClaims waits until enough claims are stored.
func waitForClaims(ctx context.Context, r *recorder, progress func(history.Stats)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, *timeoutFlag, errors.New("time is up"))
	defer cancel()
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d claims: %w", r.Stats().Claims, *claimsFlag, context.Cause(ctx))
		case <-ticker.C:
		}
		stats := r.Stats()
		progress(stats)
		if stats.Claims >= *claimsFlag {
			return nil
		}
	}
}
