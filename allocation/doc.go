// Package allocation knows which resources each pod of a node has been granted,
// and decides about pods that ask for others than they have.
//
// # What it decides
//
// There are three views of a pod's resources (al-1): what its spec asks for,
// what the node granted it, and what the runtime has given it. The second is
// this package's: it is decided here, written down, and survives the agent. All
// else of an agent (the runtime's engine, status, cgroups) sees the pod as
// [Manager.Allocated] has it, with what was granted in place of what is asked
// for, so that a resize that was not granted is not applied by a crash either
// (#126033).
//
// A pod that asks for something else than it was granted has a resize pending.
// [Manager.Retry] decides: granted, Deferred (it does not fit now) or Infeasible
// (it cannot be done here). What is granted is carried out by others, in the
// order that [Steps] gives; [InProgress] says whether it has been.
//
// # Usage
//
//	m, err := allocation.Open(allocation.Config{Dir: dir, Admit: fits, Changed: resync})
//	err = m.Run(ctx) // tries again what is pending, until ctx ends
//
// A Manager is a podworker.Allocation, and Manager.Admit is made for a
// podworker.Admitter. Its State(uid).Conditions() and PodLevel(uid) are what
// status.Config.Resize asks for. Call Prune once all sources have spoken, and
// Retry for the triggers that nobody else tells it of.
//
// An engine that carries a resize out:
//
//	has := allocation.Actuated(pod, observed, podLevel)
//	steps := allocation.Steps(has, pod, observed)
//	if err := allocation.CheckDecrease(steps, usage); err != nil { ... }
//	done, err := allocation.Carry(ctx, steps, actuator)
//
// # Concurrency
//
// All methods may be called from many goroutines; for one pod they come one
// after the other, as podworker has it. Decisions are made one at a time, so
// that no two pods are granted the same room. Config.Admit, Config.Record,
// Config.Changed and the hooks are called while one is made, and must not call
// the Manager. Allocated, State and PodLevel never wait for a decision. Pods
// that are handed in are not changed, and those that are handed out are not to
// be.
//
// # Guarantees and limits
//
//   - A pod whose resize is not granted has what it had.
//   - A record is written before the pod is told what it was granted, whole or
//     not at all. A write that fails is logged, and the pod gets what it was
//     granted (al-4): after a restart it is decided about again.
//   - A resize that was found infeasible is not tried again until the pod asks
//     for something else, or the agent is restarted (al-10).
//   - Whether a resize is in progress is as good as what the runtime tells of
//     its containers: one that tells nothing counts as done.
//   - A pod that runs without a record (adopted from another agent, or its
//     record is broken) counts as granted what it asks for.
//   - A pod holds what it was granted until it is released, which a Pipeline
//     does when it has been cleaned up; until then a resize that is pending may
//     still be granted to it, also while it is being stopped.
//   - Claims, and resources other than requests and limits, stay as the spec has
//     them.
//
// # Differences from the kubelet
//
//   - There is a file per pod. One that is broken is logged, counts as absent
//     and is replaced when its pod is granted something; the kubelet has one for
//     all, and does not start if it is broken (al-5).
//   - Pods of an earlier agent keep their room from the first moment, by their
//     records, also before their sources have brought them; a new pod cannot
//     take it.
//   - What the runtime has given containers is read from the runtime's answers
//     (runtime.ContainerStatus.Resources), not from a second record (al-21);
//     only what the pod as a whole was given is written down here.
//   - What a cgroup cannot tell apart counts as the same, so that very small
//     cpu requests and limits don't leave a resize in progress (#123441).
//   - A refusal that differs from the last only in its wording makes no event.
//   - A trigger for one pod decides about all that are pending in that very
//     call; there is no second loop.
//   - Events and messages show pod-level resources too.
//   - What asks for more than NodeFacts.Allocatable is Infeasible here, beside
//     the cases of al-10, and an Admit may say the same of what it refuses.
//     The messages of Infeasible are our own words.
//   - There are no feature gates: in-place resize of containers and of pods is
//     on, NodeFacts.NoResize turns it off.
//
// # Testing
//
// Everything but Manager is a pure function. Retry is the step under Run, needs
// no time, and works in a testing/synctest bubble.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package allocation
