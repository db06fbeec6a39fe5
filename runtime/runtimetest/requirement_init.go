package runtimetest

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// initRequirements are those on init containers and sidecars.
var initRequirements = []requirement{
	{
		name:     "InitContainersRunInOrder",
		text:     "SyncPod does not wait for containers: it starts the first init container, and the second only in a call made after the first has exited; regular containers follow the last.",
		contract: "Runtime.SyncPod: one step is what can be done without waiting for a container (rt-56 … rt-65)",
		cause:    "init containers are started together, or one call waits for all of them",
		needs:    []string{"InitContainers"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("main", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{named("first", t.suite.Containers.Exit(0)), named("second", t.suite.Containers.Exit(0))}
			t.sync(pod)
			if s := t.look(pod.UID); s.Container("second") != nil || s.Container("main") != nil {
				t.Errorf("one SyncPod started more than the first init container; the pod is\n%s", describe(s))
			}
			s := t.up(pod)
			first, second, main := t.container(s, "first"), t.container(s, "second"), t.container(s, "main")
			if second.CreatedAt.Before(first.FinishedAt) || main.CreatedAt.Before(second.FinishedAt) {
				t.Errorf("first finished at %v, second was created at %v and finished at %v, main was created at %v",
					first.FinishedAt, second.CreatedAt, second.FinishedAt, main.CreatedAt)
			}
			if len(s.Containers) != 3 {
				t.Errorf("an init container ran more than once; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "FailedInitContainerBlocksPod",
		text:     "After the final failure of an init container (restartPolicy Never) no other container of the pod is started.",
		contract: "the API's meaning of initContainers and restartPolicy (rt-64)",
		cause:    "the exit code of an init container is ignored",
		needs:    []string{"InitContainers"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("main", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{named("first", t.suite.Containers.Exit(1)), named("second", t.suite.Containers.Exit(0))}
			t.syncUntil(pod, "first has exited", exited("first"))
			t.syncThrice(pod)
			if s := t.look(pod.UID); len(s.Containers) != 1 {
				t.Errorf("a container was started after the failure; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "SyncPodDoesNotWaitForContainers",
		text:     "SyncPod does not wait for containers: it returns while an init container runs, and starts no other until that has exited.",
		contract: "Runtime.SyncPod",
		cause:    "SyncPod starts the whole pod in one call",
		needs:    []string{"InitContainers"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("main", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{named("first", t.suite.Containers.Long)}
			begun := time.Now()
			t.sync(pod)
			if took := time.Since(begun); took > t.suite.Timing.Timeout {
				t.Errorf("SyncPod took %v", took)
			}
			t.syncThrice(pod)
			if s := t.look(pod.UID); !in(s, "first", runtime.ContainerRunning) || len(s.Containers) != 1 {
				t.Errorf("the first init container is not the only one; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "InitContainersRunOnce",
		text:     "An init container that has succeeded does not run again in the same sandbox, whatever the regular containers do.",
		contract: "the API's meaning of initContainers (rt-54, rt-57)",
		cause:    "each restart of a regular container starts with the first init container",
		needs:    []string{"InitContainers"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1)), named("long", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{named("first", t.suite.Containers.Exit(0))}
			s := t.syncUntil(pod, "flappy was restarted", restarted("flappy"))
			if len(instances(s, "first")) != 1 {
				t.Errorf("first ran again; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "SidecarsStartInOrder",
		text:     "An init container with restartPolicy Always (a sidecar) is started in its order among the init containers; later containers wait for its start, not for its exit.",
		contract: "the API's meaning of initContainers[].restartPolicy (rt-56, rt-61)",
		cause:    "sidecars are treated as init containers, for whose exit the pod waits forever, or as regular containers, which start last",
		needs:    []string{"InitContainers"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("main", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{sidecar("proxy", t.suite.Containers.Long), named("setup", t.suite.Containers.Exit(0)), sidecar("log", t.suite.Containers.Long)}
			s := t.up(pod)
			for _, name := range []string{"proxy", "log"} {
				if !in(s, name, runtime.ContainerRunning) {
					t.Errorf("main runs and %s does not; the pod is\n%s", name, describe(s))
				}
			}
			proxy, setup, log, main := t.container(s, "proxy"), t.container(s, "setup"), t.container(s, "log"), t.container(s, "main")
			if setup.CreatedAt.Before(proxy.StartedAt) || log.CreatedAt.Before(setup.FinishedAt) || main.CreatedAt.Before(log.StartedAt) {
				t.Errorf("not in order: proxy started %v, setup was created %v and finished %v, log was created %v and started %v, main was created %v",
					proxy.StartedAt, setup.CreatedAt, setup.FinishedAt, log.CreatedAt, log.StartedAt, main.CreatedAt)
			}
		},
	},
	{
		name:     "SidecarsAreRestarted",
		text:     "A sidecar that exits is restarted, also in a pod with restartPolicy Never.",
		contract: "the API's meaning of initContainers[].restartPolicy (rt-63)",
		cause:    "the pod's policy is applied to its sidecars",
		needs:    []string{"InitContainers"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("main", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{sidecar("flappy", t.suite.Containers.Exit(0))}
			t.syncUntil(pod, "flappy was restarted", restarted("flappy"))
		},
	},
	{
		name:     "SidecarsDoNotKeepPodRunning",
		text:     "When the regular containers have terminated, the pod is complete: SyncPod stops its sidecars and does not restart them.",
		contract: "the API's meaning of initContainers[].restartPolicy (rt-50)",
		cause:    "a running sidecar keeps its pod running, so that jobs never complete",
		needs:    []string{"InitContainers"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("main", t.suite.Containers.Exit(0)))
			pod.Spec.InitContainers = []v1.Container{sidecar("proxy", t.suite.Containers.Long)}
			t.syncUntil(pod, "main has exited and proxy with it", func(s *runtime.PodStatus) bool {
				return exited("main")(s) && exited("proxy")(s)
			})
			t.syncThrice(pod)
			if s := t.look(pod.UID); len(s.Containers) != 2 || !exited("proxy")(s) {
				t.Errorf("a container was started in a completed pod; it is\n%s", describe(s))
			}
		},
	},
	{
		name:     "SidecarsStopLast",
		text:     "KillPod stops the regular containers before the sidecars, and the sidecars in the reverse order of their start.",
		contract: "the API's meaning of initContainers[].restartPolicy (rt-116)",
		cause:    "all containers get SIGTERM at the same time",
		needs:    []string{"InitContainers"},
		check: func(t *checkT) {
			t.settled(func(settle func()) error {
				pod := t.pod(v1.RestartPolicyAlways, named("main", t.suite.Containers.Long))
				pod.Spec.InitContainers = []v1.Container{sidecar("first", t.suite.Containers.Long), sidecar("second", t.suite.Containers.Long)}
				pod.Spec.TerminationGracePeriodSeconds = seconds(2 * t.suite.Timing.Timeout)
				t.up(pod)
				settle()
				t.kill(pod, nil)
				s := t.look(pod.UID)
				t.stopped(s)
				main, second, first := t.container(s, "main"), t.container(s, "second"), t.container(s, "first")
				if second.FinishedAt.Before(main.FinishedAt) || first.FinishedAt.Before(second.FinishedAt) {
					return fmt.Errorf("main finished at %v, the second sidecar at %v, the first at %v", main.FinishedAt, second.FinishedAt, first.FinishedAt)
				}
				return nil
			})
		},
	},
}

// sidecar returns c as an init container with restartPolicy Always.
func sidecar(name string, c v1.Container) v1.Container {
	c = named(name, c)
	c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	return c
}
