// Package replay replays recordings of package record: the recorded pods, answers of the CRI, events, probes and
// random numbers drive a real agent in virtual time, whose actions are compared with those of the recorded one.
//
// # Behavior
//
// It decides how a recorded input is delivered to an agent that runs at another speed, and whether two
// agents behave equally. [Run] constructs an agent (packages agent and runtime/cri) whose
// runtime, sources, probe handlers, volumes, cgroups and sink answer from the recording:
//
//   - A call that changes something is matched with a recorded one of the same pod, container and attempt, and has
//     its answer. Recorded calls that overlapped may be made in any order.
//   - A read has the answer of the nearest recorded read with the same request. Where the replayed
//     agent is ahead of or behind the recorded one, the answer is corrected: it contains what this
//     agent has created, started, pulled and removed, and a container that it has not stopped runs.
//   - The agent finds the checkpoints and statuses that the recorded one found, and does nothing while the recorded
//     process did not run.
//   - An operation returns at its recorded end, so that differences of speed do not accumulate. Events are
//     delivered at their times, after the calls that caused them.
//
// Calls that change something, writes of statuses, probes, and operations on volumes and cgroups
// are compared: their contents and their order in each pod, and their times with a tolerance.
// Masked values are equal to any value, timeouts may differ by a second, and descriptions of
// errors of connections are equal. What depends on the Go scheduler is not compared:
//
//   - statuses that one of the agents published for less than half of the tolerance
//   - the order of concurrent calls that fail at once
//   - when the garbage collection removes a container or a sandbox, within its period of a minute
//   - whether a sandbox that is stopped is stopped again
//
// Answers are taken from the recording, not computed by a model of a runtime: a list that omits a running container, an
// error or a slow call is the input that caused a defect.
//
// With Options.Decisions, the recorded program may be another one, such as the kubelet: the runtime is that of a
// checked replay (below), and only the calls that start and stop sandboxes and containers are compared ([Decisions]).
//
// With Options.Invariants, a replay is checked and not compared: the runtime is a model whose containers exit
// as the recorded ones did and that is consistent for any actions of the agent, and the invariants of package
// sim ([Invariants]) are evaluated on what the agent does to it. [Shrink] drops what is not necessary for a
// violation, or for a divergence, and [Recording.AsTest] writes the rest as a Go test that calls [Check].
//
// # Usage
//
//	recording, err := replay.Open("/var/log/kubeparts-recordings")
//	…
//	result, err := replay.Run(ctx, recording, replay.Options{Pod: "default/web"})
//	…
//	fmt.Println(result.Divergence) // nil: the agent behaves as the recorded one
//
//	small, err := replay.Shrink(ctx, recording, replay.ShrinkOptions{Invariant: "back-off"})
//	…
//	err = small.AsTest(file, replay.TestFile{Invariants: []string{"back-off"}})
//
// examples/replay does this, and docs/recording.md describes how to find a defect with it.
//
// # Concurrency
//
// Run and Shrink may be called concurrently, also for one Recording.
//
// # Guarantees and limits
//
//   - Replays of one recording with the same program and Options have the same actions in the same
//     order. Connections of the agent have delays of nanoseconds, so that its goroutines seldom
//     run at the same instant. Times can differ by microseconds until the next recorded time.
//   - A damaged recording is replayed up to the damage, which is in Recording.Damage. Memory is bounded by the size of
//     the recording, of which at most 1 GiB are read.
//   - A recording is replayed from its start. If its first file was removed by the rotation, the error is an
//     [ErrIncomplete].
//   - What is not recorded is not replayed: admission, allocation and resizes, resource claims, mirror pods,
//     image garbage collection, drains. Variables from ConfigMaps and Secrets have a constant value. Hooks that
//     send requests are removed; exec hooks are replayed. The replayed agent has the default configuration;
//     that of the recorded program can be set with Options.Adjust.
//   - The limit of concurrent starts followed the latency of the runtime, call by call. A compared replay has no
//     limit: a start waits for its recorded time if the recorded agent was starting something all the time until then.
//   - How often an agent tries to remove what the runtime refuses to remove is not
//     compared, nor are probes in the last seconds of a container (Options.Tolerance).
//   - A container that the recorded agent could not create for a reason of its own, such as a full disk or
//     Services that it has not read, is not created; this is known from its status. Other files that the agent
//     could not write because its disk was full are written: checkpoints, and the directories of a sandbox.
//   - Recordings without a [record.State] are replayed as if no earlier agent had left state.
//   - The resources in requests and statuses, mounts, addresses of DNS servers and paths are not compared.
//   - If the wall clock was adjusted during the recording, times in statuses differ by the adjustment.
//   - Checked replays do not reproduce stale lists, lost events, evictions, and
//     containers that others removed. Invariants that depend on the behavior of simulated
//     images or on subsystems that are not replayed are not evaluated.
//   - A shrunk recording fails for the same invariant, but possibly for another reason.
//     Its time and memory are those of at most ShrinkOptions.Replays replays.
//   - Faults of single reads (an error that only one of many calls returned) are delivered with the nearest read. If
//     many calls fail, an unmodified agent may diverge.
//
// # Differences from the kubelet
//
// The kubelet has no counterpart.
//
// # Testing
//
// Agents on a CRI runtime in memory with several latencies are recorded and replayed, without and
// with defects, whose recordings are shrunk to tests. Recordings are cut and changed, and FuzzRun
// and FuzzShrink replay, check and shrink any frames. With the tag mutants, internal/mutants
// records agents with planted bugs on a containerd, and shrinks the recordings to tests.
//
// Recordings of situations in which the kubelet had published defects are in
// testdata/published; what the replayed agent does is asserted, too.
//
// # Stability
//
// Experimental: the API may change in any release.
package replay
