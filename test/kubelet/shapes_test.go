package kubelet

import (
	"fmt"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A shape is a pod and its expected outcome: its phase and, for each of its
// containers, a pattern for the description of its state.
type shape struct {
	name, manifest string
	phase          v1.PodPhase
	want           map[string]string
}

// secondTry is a script that fails when it runs for the first time in a pod. The
// containers of a pod share /dev/shm.
func secondTry(code int, then string) string {
	return fmt.Sprintf(`f=/dev/shm/kubeparts-lifecycle-$UID-$%s; [ -e $f ] || { touch $f; exit %d; }; rm $f; %s`, containerVar, code, then)
}

// lastWords writes where the termination message is read from.
const lastWords = `printf 'last words' >${KUBEPARTS_TERMINATION_LOG:-/dev/termination-log}; exit 9`

// commonShapes are the shapes for every runtime.
var commonShapes = []shape{
	{"one", manifest("one", containers(container("main", untilTerm))),
		v1.PodRunning, map[string]string{"main": "running"}},
	{"three", manifest("three", containers(container("a", untilTerm), container("b", untilTerm), container("c", untilTerm))),
		v1.PodRunning, map[string]string{"a": "running", "b": "running", "c": "running"}},
	{"succeeds", manifest("succeeds", never, containers(container("main", "exit 0"))),
		v1.PodSucceeded, map[string]string{"main": "exited 0 Completed"}},
	{"fails", manifest("fails", never, containers(container("main", "exit 7"))),
		v1.PodFailed, map[string]string{"main": "exited 7 Error"}},
	{"half-fails", manifest("half-fails", never, containers(container("bad", "exit 1"), container("good", "exit 0"))),
		v1.PodFailed, map[string]string{"bad": "exited 1 Error", "good": "exited 0 Completed"}},
	{"half-done", manifest("half-done", never, containers(container("done", "exit 1"), container("runs", untilTerm))),
		v1.PodRunning, map[string]string{"done": "exited 1 Error", "runs": "running"}},
	{"done-at-once", manifest("done-at-once", onFailure, containers(container("main", "exit 0"))),
		v1.PodSucceeded, map[string]string{"main": "exited 0 Completed"}},
	{"done-at-last", manifest("done-at-last", onFailure, containers(container("main", secondTry(5, "exit 0")))),
		v1.PodSucceeded, map[string]string{"main": "exited 0 Completed, after exited 5 Error, 1 restarts"}},
	{"inits", manifest("inits", inits(container("first", "echo first; sleep 1; echo done"), container("second", "echo second; sleep 1; echo done")),
		containers(container("main", "echo main; "+untilTerm))),
		v1.PodRunning, map[string]string{"first": "exited 0 Completed", "second": "exited 0 Completed", "main": "running"}},
	{"init-fails", manifest("init-fails", never, inits(container("first", "exit 4"), container("second", "exit 0")), containers(container("main", untilTerm))),
		v1.PodFailed, map[string]string{"first": "exited 4 Error", "second": "waiting PodInitializing", "main": "waiting PodInitializing"}},
	{"init-retries", manifest("init-retries", inits(container("first", secondTry(6, "exit 0"))), containers(container("main", untilTerm))),
		v1.PodRunning, map[string]string{"first": "exited 0 Completed, after exited 6 Error, 1 restarts", "main": "running"}},
	{"sidecar-job", manifest("sidecar-job", never, inits(container("helper", untilTerm, sidecar)), containers(container("main", "sleep 1; exit 0"))),
		v1.PodSucceeded, map[string]string{"helper": "exited 0 Completed", "main": "exited 0 Completed"}},
	{"sidecar", manifest("sidecar", inits(container("helper", untilTerm, sidecar), container("then", "exit 0")), containers(container("main", untilTerm))),
		v1.PodRunning, map[string]string{"helper": "running", "then": "exited 0 Completed", "main": "running"}},
	{"host", manifest("host", "hostNetwork: true", containers(container("main", "readlink /proc/self/ns/net; "+untilTerm))),
		v1.PodRunning, map[string]string{"main": "running"}},
	{"env", manifest("name: env, labels: {tier: back}", containers(container("main", "echo $"+podVar+" $NAMESPACE $UID $POD_IP $TIER; "+untilTerm))),
		v1.PodRunning, map[string]string{"main": "running"}},
	{"message", manifest("message", never, containers(container("main", lastWords))),
		v1.PodFailed, map[string]string{"main": `exited 9 Error "last words"`}},
	{"fallback", manifest("fallback", never, containers(container("main", "echo it was the log; exit 9", "terminationMessagePolicy: FallbackToLogsOnError"))),
		v1.PodFailed, map[string]string{"main": `exited 9 Error "it was the log\\n"`}},
	{"elsewhere", manifest("name: elsewhere, namespace: other", containers(container("main", untilTerm))),
		v1.PodRunning, map[string]string{"main": "running"}},
	{"talker", manifest("talker", never, containers(container("main", talk))),
		v1.PodSucceeded, map[string]string{"main": "exited 0 Completed"}},
	{"crash", manifest("crash", containers(container("main", "echo begin; sleep 1; echo end; exit 3"), container("neighbour", untilTerm))),
		v1.PodRunning, map[string]string{"main": "waiting CrashLoopBackOff, after exited 3 Error, [12] restarts", "neighbour": "running"}},
	{"stubborn", manifest("stubborn", "terminationGracePeriodSeconds: 4", containers(container("main", stubborn))),
		v1.PodRunning, map[string]string{"main": "running"}},
	{"polite", manifest("polite", "terminationGracePeriodSeconds: 60", containers(container("main", "trap 'echo caught TERM; exit 0' TERM; sleep 3600 & wait"))),
		v1.PodRunning, map[string]string{"main": "running"}},
	{"slow", slowManifest("first"),
		v1.PodRunning, map[string]string{"main": "running"}},
}

// The shapes that depend on the runtime. A pod is pending while one of its containers
// has not run yet, whatever the others do.
var (
	processShapes = []shape{
		{"killed", manifest("killed", never, containers(container("main", "kill -KILL $$$$"))), // the API makes it $$
			v1.PodFailed, map[string]string{"main": "exited 137 Error"}},
		{"no-command", noCommand,
			v1.PodPending, map[string]string{"main": "waiting CreateContainerError", "neighbour": "running"}},
		{"no-dir", manifest("no-dir", containers(container("main", untilTerm, "workingDir: /no/such/dir"))),
			v1.PodPending, map[string]string{"main": "waiting CreateContainerError"}},
	}
	containerdShapes = []shape{
		{"greedy", manifest("greedy", never, containers(container("main", "exec tail /dev/zero", "resources: {limits: {memory: 16Mi}}"))),
			v1.PodFailed, map[string]string{"main": "exited 137 OOMKilled"}},
		{"no-command", noCommand,
			v1.PodRunning, map[string]string{"main": "waiting CrashLoopBackOff, after exited 128 StartError .*no/such/command.*", "neighbour": "running"}},
		{"no-image", manifest("no-image", containers(container("main", untilTerm, "image: kubeparts.test/absent:1", "imagePullPolicy: Never"))),
			v1.PodPending, map[string]string{"main": "waiting ErrImageNeverPull"}},
		{"one-image", manifest("one-image", containers(container("a", untilTerm, "image: kubeparts.test/absent:1", "imagePullPolicy: Never"), container("b", untilTerm))),
			v1.PodPending, map[string]string{"a": "waiting ErrImageNeverPull", "b": "running"}},
	}
	noCommand = manifest("no-command", containers(entry("main", "command: [/no/such/command]"), container("neighbour", untilTerm)))
)

// talk prints 3000 lines, and one that exceeds the length of a line in a log.
const (
	talk     = `i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done; head -c 20000 /dev/zero | tr '\0' x; echo; echo oops >&2`
	talkLong = 20000
)

// slowManifest is a pod that takes a while to stop, in two versions.
func slowManifest(version string) string {
	return manifest("slow", "terminationGracePeriodSeconds: 30", containers(container("main",
		"trap 'echo asked; sleep 2; echo ends; exit 0' TERM; echo "+version+" begins; sleep 3600 & wait")))
}

// words describe the state of a container: "running", "exited 0 Completed", or
// "waiting CrashLoopBackOff, after exited 3 Error, 2 restarts".
func words(s v1.ContainerStatus) string {
	text := state(s.State)
	if s.LastTerminationState.Terminated != nil {
		text += ", after " + state(s.LastTerminationState)
	}
	if s.RestartCount > 0 {
		text += fmt.Sprintf(", %d restarts", s.RestartCount)
	}
	return text
}

func state(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		text := fmt.Sprintf("exited %d %s", s.Terminated.ExitCode, s.Terminated.Reason)
		if s.Terminated.Message != "" {
			text += fmt.Sprintf(" %q", s.Terminated.Message)
		}
		return text
	case s.Waiting != nil:
		return "waiting " + s.Waiting.Reason
	}
	return "nothing"
}

// statuses returns the statuses of all containers of a pod, by name.
func statuses(pod v1.Pod) map[string]v1.ContainerStatus {
	all := map[string]v1.ContainerStatus{}
	for _, list := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			all[s.Name] = s
		}
	}
	return all
}

// match returns the difference between pod and its shape; "" if there is none.
func (s shape) match(pod v1.Pod) string {
	var wrong []string
	if pod.Status.Phase != s.phase {
		wrong = append(wrong, fmt.Sprintf("%s is %q, not %s", s.name, pod.Status.Phase, s.phase))
	}
	all := statuses(pod)
	if len(all) != len(s.want) {
		wrong = append(wrong, fmt.Sprintf("%s has %d containers, not %d", s.name, len(all), len(s.want)))
	}
	for name, pattern := range s.want {
		if got := words(all[name]); !regexp.MustCompile("^(" + pattern + ")$").MatchString(got) {
			wrong = append(wrong, fmt.Sprintf("%s/%s is %s, not %s", s.name, name, got, pattern))
		}
	}
	return strings.Join(wrong, "; ")
}
