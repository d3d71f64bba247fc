// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/controllertest"
)

func waitingFor(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func endedWith(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: "last line of a log", FinishedAt: metav1.Now()}}
}

func started() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

// container returns a change that gives a Pod the status of one more container, which is not ready.
func container(name string, state, last corev1.ContainerState) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, State: state, LastTerminationState: last})
	}
}

func initContainer(name string, state, last corev1.ContainerState) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, State: state, LastTerminationState: last})
	}
}

func podReason(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Reason, pod.Status.Message = reason, message }
}

func disrupted(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	}
}

func never() corev1.ContainerState { return corev1.ContainerState{} }

func TestReadyMessageNamesWhatHoldsThePodUp(t *testing.T) {
	const pending, running = "Pod exists with phase: Pending", "Pod is Running but not Ready"
	isRunning := phase(corev1.PodRunning)
	gate := func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", Message: "gate closed"}}
	}
	for name, test := range map[string]struct {
		changes []func(*corev1.Pod)
		want    string
	}{
		"nothing yet":    {nil, pending},
		"starting":       {[]func(*corev1.Pod){container("main", waitingFor("ContainerCreating", ""), never())}, pending},
		"init at work":   {[]func(*corev1.Pod){initContainer("init", started(), never()), container("main", waitingFor("PodInitializing", ""), never())}, pending},
		"no such image":  {[]func(*corev1.Pod){container("main", waitingFor("ErrImagePull", "not found"), never())}, pending + `; container "main": ImagePullBackOff: not found`},
		"no image, wait": {[]func(*corev1.Pod){container("main", waitingFor("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: not found`), never())}, pending + `; container "main": ImagePullBackOff: not found`},
		"no image, silent": {[]func(*corev1.Pod){container("main", waitingFor("ImagePullBackOff", `Back-off pulling image "x"`), never())},
			pending + `; container "main": ImagePullBackOff: Back-off pulling image "x"`},
		"no Secret": {[]func(*corev1.Pod){container("main", waitingFor("CreateContainerConfigError", `secret "s" not found`), never())},
			pending + `; container "main": CreateContainerConfigError: secret "s" not found`},
		"crashed once":  {[]func(*corev1.Pod){isRunning, container("main", endedWith(1, "Error"), never())}, running + `; container "main": exit code 1 (Error)`},
		"crashed again": {[]func(*corev1.Pod){isRunning, container("main", endedWith(1, "Error"), endedWith(2, "Error"))}, running + `; container "main": CrashLoopBackOff: exit code 1 (Error)`},
		"crash loop": {[]func(*corev1.Pod){isRunning, container("main", waitingFor("CrashLoopBackOff", "back-off 10s restarting failed container=main"), endedWith(137, "OOMKilled"))},
			running + `; container "main": CrashLoopBackOff: exit code 137 (OOMKilled)`},
		"cannot be run": {[]func(*corev1.Pod){isRunning, container("main", waitingFor("RunContainerError", "exec: no such file"), never())},
			running + `; container "main": RunContainerError: exec: no such file`},
		"cannot be run, again": {[]func(*corev1.Pod){isRunning, container("main", waitingFor("RunContainerError", "exec: no such file"), endedWith(128, "StartError"))},
			running + `; container "main": CrashLoopBackOff: exit code 128 (StartError)`},
		"restarted":       {[]func(*corev1.Pod){isRunning, container("main", started(), endedWith(1, "Error"))}, running},
		"failing probe":   {[]func(*corev1.Pod){isRunning, container("main", started(), never())}, running},
		"ended well":      {[]func(*corev1.Pod){isRunning, container("main", endedWith(0, "Completed"), never())}, running},
		"readiness gate":  {[]func(*corev1.Pod){isRunning, gate}, running + "; ReadinessGatesNotReady: gate closed"},
		"the first fault": {[]func(*corev1.Pod){initContainer("init", waitingFor("A", ""), never()), container("main", waitingFor("B", ""), never())}, pending + `; container "init": A`},
		"node lost":       {[]func(*corev1.Pod){isRunning, podReason("NodeLost", "Node n is unresponsive"), container("main", waitingFor("A", ""), never())}, running + "; NodeLost: Node n is unresponsive"},
		"being evicted": {[]func(*corev1.Pod){ready, terminating, disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")},
			running + "; DeletionByTaintManager: Taint manager: deleting due to NoExecute taint"},
		"being deleted":     {[]func(*corev1.Pod){ready, terminating}, running + "; Pod is being deleted"},
		"text of two lines": {[]func(*corev1.Pod){container("main", waitingFor("A", "one\n\ttwo "), never())}, pending + `; container "main": A: one two`},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := testSandbox()
			pod := trimPod(testPod(sandbox, test.changes...))
			status := observedStatus(sandbox, &observation{pod: pod}, "cluster.local", testTime())
			if got, want := controllertest.DescribeCondition(status.Conditions, conditionReady), "False/DependenciesNotReady: "+test.want; got != want {
				t.Errorf("Ready is\n\t%s\nwant\n\t%s", got, want)
			}
		})
	}
}

func TestExplanationFollowsTheTextOfUpstream(t *testing.T) {
	sandbox := testSandbox(wantService(true))
	o := &observation{pod: testPod(sandbox, container("main", waitingFor("A", ""), never())), service: desiredService(sandbox)}
	status := observedStatus(sandbox, o, "cluster.local", testTime())
	if got, want := controllertest.DescribeCondition(status.Conditions, conditionReady), `False/DependenciesNotReady: Pod exists with phase: Pending; Service Exists; container "main": A`; got != want {
		t.Errorf("Ready is %s", got)
	}
}

func TestFailureOfThePodIsToldInReadyAndFinished(t *testing.T) {
	for name, test := range map[string]struct {
		changes []func(*corev1.Pod)
		want    string
	}{
		"evicted":         {[]func(*corev1.Pod){podReason("Evicted", "The node was low on resource: memory."), container("main", endedWith(137, "Error"), never())}, "; Evicted: The node was low on resource: memory."},
		"out of time":     {[]func(*corev1.Pod){podReason("DeadlineExceeded", "")}, "; DeadlineExceeded"},
		"preempted":       {[]func(*corev1.Pod){disrupted("PreemptionByScheduler", "making room")}, "; PreemptionByScheduler: making room"},
		"exit code":       {[]func(*corev1.Pod){container("helper", endedWith(0, "Completed"), never()), container("main", endedWith(3, "Error"), never())}, `; container "main": exit code 3 (Error)`},
		"exit code alone": {[]func(*corev1.Pod){container("main", endedWith(3, ""), never())}, `; container "main": exit code 3`},
		"init":            {[]func(*corev1.Pod){initContainer("init", endedWith(1, "Error"), never())}, `; container "init": exit code 1 (Error)`},
		"silent":          {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox := testSandbox()
			pod := trimPod(testPod(sandbox, append(test.changes, phase(corev1.PodFailed))...))
			status := observedStatus(sandbox, &observation{pod: pod}, "cluster.local", testTime())
			for conditionType, want := range map[string]string{
				conditionReady:    "False/PodFailed: Pod failed" + test.want,
				conditionFinished: "True/PodFailed: Pod failed" + test.want,
			} {
				if got := controllertest.DescribeCondition(status.Conditions, conditionType); got != want {
					t.Errorf("%s is\n\t%s\nwant\n\t%s", conditionType, got, want)
				}
			}
		})
	}
}

func TestDetailIsBoundedAndValid(t *testing.T) {
	got := detail(strings.Repeat("é", maxDetail))
	if len(got) > maxDetail || len(got) < maxDetail-1 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid: %v", len(got), utf8.ValidString(got))
	}
}

// statusWrites makes a pass for each state of the Pod, as long after the one before as a write is held back at most, and returns
// how many writes that took.
func (f *fixture) statusWrites(states ...*corev1.Pod) int {
	f.T.Helper()
	writes := 0
	for _, pod := range states {
		f.syncSandbox()
		f.InCache(trimPod(pod))
		f.MustPass()
		f.syncSandbox()
		f.clock.Step(statusDelay)
		f.MustPass()
		for _, request := range f.Requests() {
			if request != "patch sandboxes/status" {
				f.T.Errorf("unexpected %s", request)
			}
			writes++
		}
	}
	return writes
}

func TestCrashLoopIsWrittenDownOnce(t *testing.T) {
	sandbox := testSandbox()
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox))
	f.statusWrites(testPod(sandbox), testPod(sandbox, phase(corev1.PodRunning), container("main", started(), never())))

	var states []*corev1.Pod
	last := never()
	for i := range 50 {
		end := endedWith(int32(1+i%2), "Error")
		delay := fmt.Sprintf("back-off %v restarting failed container=main", 10*time.Duration(i)*time.Second)
		states = append(states,
			testPod(sandbox, phase(corev1.PodRunning), container("main", end, last)),
			testPod(sandbox, phase(corev1.PodRunning), container("main", waitingFor("CrashLoopBackOff", delay), end)),
			testPod(sandbox, phase(corev1.PodRunning), container("main", started(), end)),
		)
		last = end
	}
	if got := f.statusWrites(states...); got != 2 {
		t.Errorf("%d status writes for 50 crashes, want one for the first crash and one for the loop", got)
	}
	f.wantCondition(conditionReady, `False/DependenciesNotReady: Pod is Running but not Ready; container "main": CrashLoopBackOff: exit code 1 (Error)`)
	if got := f.statusWrites(testPod(sandbox, ready)); got != 1 {
		t.Errorf("%d status writes for the end of the loop", got)
	}
	f.wantCondition(conditionReady, "True/DependenciesReady: Pod is Ready")
}

func TestCrashLoopThatIsReadyInBetweenIsWrittenDownTwicePerCrash(t *testing.T) {
	sandbox := testSandbox()
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox))
	f.statusWrites(testPod(sandbox, ready))
	const crashes = 20
	var states []*corev1.Pod
	last := endedWith(1, "Error")
	for range crashes {
		states = append(states,
			testPod(sandbox, phase(corev1.PodRunning), container("main", endedWith(1, "Error"), last)),
			testPod(sandbox, phase(corev1.PodRunning), container("main", waitingFor("CrashLoopBackOff", ""), last)),
			testPod(sandbox, ready),
		)
	}
	if got := f.statusWrites(states...); got != 2*crashes {
		t.Errorf("%d status writes for %d crashes", got, crashes)
	}
}

func TestTwoCrashLoopsDoNotTakeTurns(t *testing.T) {
	sandbox := testSandbox()
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox))
	f.statusWrites(testPod(sandbox, phase(corev1.PodRunning)))
	loop, up, end := waitingFor("CrashLoopBackOff", ""), started(), endedWith(1, "Error")
	var states []*corev1.Pod
	for range 20 {
		states = append(states,
			testPod(sandbox, phase(corev1.PodRunning), container("a", loop, end), container("b", loop, end)),
			testPod(sandbox, phase(corev1.PodRunning), container("a", up, end), container("b", loop, end)),
			testPod(sandbox, phase(corev1.PodRunning), container("a", loop, end), container("b", up, end)),
		)
	}
	if got := f.statusWrites(states...); got != 1 {
		t.Errorf("%d status writes", got)
	}
}

func TestMissingImageIsWrittenDownOnce(t *testing.T) {
	sandbox := testSandbox()
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox))
	f.statusWrites(testPod(sandbox))
	var states []*corev1.Pod
	for i := range 50 {
		cause := fmt.Sprintf("request %d: not found", i)
		states = append(states,
			testPod(sandbox, container("main", waitingFor("ErrImagePull", cause), never())),
			testPod(sandbox, container("main", waitingFor("ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: `+cause), never())),
		)
	}
	if got := f.statusWrites(states...); got != 1 {
		t.Errorf("%d status writes for 50 attempts", got)
	}
	f.wantCondition(conditionReady, `False/DependenciesNotReady: Pod exists with phase: Pending; container "main": ImagePullBackOff: request 0: not found`)
}

func TestAnotherFaultReplacesTheOneBefore(t *testing.T) {
	sandbox := testSandbox()
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox))
	f.statusWrites(testPod(sandbox, container("main", waitingFor("Err", "a"), never())))
	if got := f.statusWrites(testPod(sandbox, container("main", waitingFor("ErrLonger", "b"), never()))); got != 1 {
		t.Errorf("%d status writes", got)
	}
	f.wantCondition(conditionReady, `False/DependenciesNotReady: Pod exists with phase: Pending; container "main": ErrLonger: b`)
}

func TestExplanationOfAnEarlierSpecIsNotKept(t *testing.T) {
	sandbox := testSandbox()
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox))
	f.statusWrites(testPod(sandbox, container("main", waitingFor("A", "before"), never())))
	edited := f.live()
	edited.Generation++
	f.InCache(edited, testPod(sandbox, container("main", waitingFor("A", "after"), never())))
	f.MustPass()
	f.wantCondition(conditionReady, `False/DependenciesNotReady: Pod exists with phase: Pending; container "main": A: after`)
}

func TestL12EditedTemplateIsVisibleUntilThePodIsMadeAnew(t *testing.T) {
	sandbox := testSandbox()
	f := newFixture(t).Everywhere(sandbox, testPod(sandbox, ready))
	f.MustPass()
	f.Requests()
	f.wantCondition(conditionReady, "True/DependenciesReady: Pod is Ready")

	edited := f.syncSandbox().DeepCopy()
	edited.Spec.PodTemplate.Spec.Containers[0].Image = "example:2"
	edited.Generation++
	f.InCache(edited)
	f.MustPass()
	// The new generation had to be written anyway.
	f.WantRequests("patch sandboxes/status")
	f.wantCondition(conditionReady, "True/DependenciesReady: Pod is Ready; the Pod was made from an earlier podTemplate")
	edited.Status = f.live().Status
	f.InCache(edited)
	f.MustPass()
	f.WantRequests()

	for what, pod := range map[string]*corev1.Pod{
		"the Pod failed":        testPod(sandbox, phase(corev1.PodFailed)),
		"the Pod is made anew":  testPod(edited, ready),
		"the Pod is unmarked":   testPod(sandbox, ready, func(p *corev1.Pod) { p.Annotations = nil }),
		"the Pod is going away": testPod(sandbox, ready, terminating),
	} {
		status := observedStatus(edited, &observation{pod: pod}, "cluster.local", testTime())
		if got, want := strings.Contains(controllertest.DescribeCondition(status.Conditions, conditionReady), outOfDateNote), what == "the Pod failed"; got != want {
			t.Errorf("%s: the note is there: %v", what, got)
		}
	}
}

func TestL11EvictedPodIsExplainedAndReplacedBySuspendAndResume(t *testing.T) {
	sandbox := testSandbox(withVolume)
	claim := desiredPersistentVolumeClaim(sandbox, &sandbox.Spec.VolumeClaimTemplates[0])
	evicted := testPod(sandbox, phase(corev1.PodFailed), podReason("Evicted", "The node was low on resource: memory."))
	f := newFixture(t).Everywhere(sandbox, claim, evicted)
	f.MustPass()
	f.WantRequests("patch sandboxes/status")
	f.wantCondition(conditionFinished, "True/PodFailed: Pod failed; Evicted: The node was low on resource: memory.")
	f.WantEvents("Warning PodFailed Pod failed; Evicted: The node was low on resource: memory.")

	f.inMode(agentsv1beta1.SandboxOperatingModeSuspended)
	f.MustPass()
	f.WantRequests("delete pods", "get sandboxes", "patch sandboxes/status")
	f.DropFromCache(evicted)
	f.syncSandbox()
	f.MustPass()
	f.WantRequests("get pods", "patch sandboxes/status")
	f.wantCondition(conditionSuspended, "True/PodTerminated: Pod has been terminated. Sandbox is suspended")
	f.wantCondition(conditionFinished, "absent")

	f.inMode(agentsv1beta1.SandboxOperatingModeRunning)
	f.MustPass()
	f.WantRequests("create pods", "patch sandboxes/status")
	f.wantCondition(conditionReady, "False/DependenciesNotReady: Pod exists with phase: Pending")
}

func TestL11LostPodIsMadeAgainWithItsVolume(t *testing.T) {
	sandbox := testSandbox(withVolume)
	claim := desiredPersistentVolumeClaim(sandbox, &sandbox.Spec.VolumeClaimTemplates[0])
	pod := testPod(sandbox, ready)
	f := newFixture(t).Everywhere(sandbox, claim).InCache(pod)
	f.MustPass()
	f.Requests()

	// Its node does not answer: the Pod is to go, but may still run, and nothing is forced.
	lost := testPod(sandbox, ready, terminating, disrupted("DeletionByTaintManager", "node unreachable"))
	f.syncSandbox()
	f.InCache(lost)
	f.MustPass()
	f.WantRequests("patch sandboxes/status")
	f.wantCondition(conditionReady, "False/DependenciesNotReady: Pod is Running but not Ready; DeletionByTaintManager: node unreachable")

	f.syncSandbox()
	f.DropFromCache(lost)
	f.MustPass()
	f.WantRequests("create pods")
	if got := f.livePod().Spec.Volumes[0].PersistentVolumeClaim.ClaimName; got != claim.Name {
		t.Errorf("the new Pod has the claim %s", got)
	}
}

// inMode puts the Sandbox on the server and in the cache, with another operating mode.
func (f *fixture) inMode(mode agentsv1beta1.SandboxOperatingMode) {
	f.T.Helper()
	sandbox := f.live()
	sandbox.Spec.OperatingMode = mode
	sandbox.Generation++
	f.Change(sandbox)
	f.InCache(sandbox)
}
