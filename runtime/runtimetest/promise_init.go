package runtimetest

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// initPromises are those on init containers and sidecars.
var initPromises = []promise{
	{
		name:     "InitContainersInOrder",
		text:     "SyncPod does what can be done without waiting for a container: it starts the first init container, and leaves the second to the call made after the first was seen to exit; regular containers follow the last.",
		contract: "Syncer.SyncPod: one step is what can be done without waiting for a container (rt-56 … rt-65)",
		cause:    "init containers are started together, or one call waits for all of them",
		needs:    []string{"InitContainers"},
		check: func(t *trial) {
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
		name:     "FailedInitContainerGates",
		text:     "After an init container that failed for good (restartPolicy Never) no other container of the pod is started.",
		contract: "the API's meaning of initContainers and restartPolicy (rt-64)",
		cause:    "the exit code of an init container is not looked at",
		needs:    []string{"InitContainers"},
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyNever, named("main", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{named("first", t.suite.Containers.Exit(1)), named("second", t.suite.Containers.Exit(0))}
			t.syncUntil(pod, "first has exited", exited("first"))
			t.syncThrice(pod)
			if s := t.look(pod.UID); len(s.Containers) != 1 {
				t.Errorf("something was started after the failure; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "StepDoesNotWaitForContainers",
		text:     "One step is what can be done without waiting for a container: SyncPod returns while an init container runs, and starts nothing else until that has exited.",
		contract: "Syncer.SyncPod",
		cause:    "SyncPod brings the whole pod up in one call",
		needs:    []string{"InitContainers"},
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("main", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{named("first", t.suite.Containers.Long)}
			begun := time.Now()
			t.sync(pod)
			if took := time.Since(begun); took > t.suite.Timing.Timeout {
				t.Errorf("SyncPod took %v", took)
			}
			t.syncThrice(pod)
			if s := t.look(pod.UID); !in(s, "first", runtime.ContainerRunning) || len(s.Containers) != 1 {
				t.Errorf("not first alone runs; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "InitContainersRunOnce",
		text:     "An init container that has succeeded does not run again while the sandbox lives, whatever the regular containers do.",
		contract: "the API's meaning of initContainers (rt-54, rt-57)",
		cause:    "each restart of a regular container begins the pod from its first init container",
		needs:    []string{"InitContainers"},
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1)), named("long", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{named("first", t.suite.Containers.Exit(0))}
			s := t.syncUntil(pod, "flappy was restarted", restarted("flappy"))
			if len(instances(s, "first")) != 1 {
				t.Errorf("first ran again; the pod is\n%s", describe(s))
			}
		},
	},
	{
		name:     "SidecarsStartInTheirTurn",
		text:     "An init container with restartPolicy Always (a sidecar) is started in its turn among the init containers; what comes after it waits for its start, not for its end.",
		contract: "the API's meaning of initContainers[].restartPolicy (rt-56, rt-61)",
		cause:    "sidecars are taken for init containers, for whose exit the pod waits for ever, or for regular containers, which start last",
		needs:    []string{"InitContainers"},
		check: func(t *trial) {
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
				t.Errorf("not in turn: proxy started %v, setup was created %v and finished %v, log was created %v and started %v, main was created %v",
					proxy.StartedAt, setup.CreatedAt, setup.FinishedAt, log.CreatedAt, log.StartedAt, main.CreatedAt)
			}
		},
	},
	{
		name:     "SidecarsAreRestarted",
		text:     "A sidecar that exits is started again, also in a pod whose restartPolicy is Never.",
		contract: "the API's meaning of initContainers[].restartPolicy (rt-63)",
		cause:    "the pod's policy counts for its sidecars",
		needs:    []string{"InitContainers"},
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyNever, named("main", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{sidecar("flappy", t.suite.Containers.Exit(0))}
			t.syncUntil(pod, "flappy was restarted", restarted("flappy"))
		},
	},
	{
		name:     "SidecarsDoNotKeepThePod",
		text:     "When the regular containers have exited for good the pod has run to its end: SyncPod stops its sidecars, and starts none again.",
		contract: "the API's meaning of initContainers[].restartPolicy (rt-50)",
		cause:    "a sidecar that runs keeps its pod alive, so that jobs never end",
		needs:    []string{"InitContainers"},
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyNever, named("main", t.suite.Containers.Exit(0)))
			pod.Spec.InitContainers = []v1.Container{sidecar("proxy", t.suite.Containers.Long)}
			t.syncUntil(pod, "main has exited and proxy with it", func(s *runtime.PodStatus) bool {
				return exited("main")(s) && exited("proxy")(s)
			})
			t.syncThrice(pod)
			if s := t.look(pod.UID); len(s.Containers) != 2 || !exited("proxy")(s) {
				t.Errorf("something was started in a pod that has ended; it is\n%s", describe(s))
			}
		},
	},
	{
		name:     "SidecarsStopLast",
		text:     "KillPod stops the regular containers before the sidecars, and these in the reverse order of their start.",
		contract: "the API's meaning of initContainers[].restartPolicy (rt-116)",
		cause:    "all containers get TERM at once",
		needs:    []string{"InitContainers"},
		check: func(t *trial) {
			pod := t.pod(v1.RestartPolicyAlways, named("main", t.suite.Containers.Long))
			pod.Spec.InitContainers = []v1.Container{sidecar("first", t.suite.Containers.Long), sidecar("second", t.suite.Containers.Long)}
			pod.Spec.TerminationGracePeriodSeconds = seconds(2 * t.suite.Timing.Timeout)
			t.up(pod)
			t.settle()
			t.kill(pod, nil)
			s := t.look(pod.UID)
			t.stopped(s)
			main, second, first := t.container(s, "main"), t.container(s, "second"), t.container(s, "first")
			if second.FinishedAt.Before(main.FinishedAt) || first.FinishedAt.Before(second.FinishedAt) {
				t.Errorf("main finished at %v, the second sidecar at %v, the first at %v", main.FinishedAt, second.FinishedAt, first.FinishedAt)
			}
		},
	},
}

// sidecar returns c as an init container that goes on.
func sidecar(name string, c v1.Container) v1.Container {
	c = named(name, c)
	c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	return c
}
