// Package compose has the rules by which the parts of an agent are combined.
//
// A part is a value that a Config takes as an interface: a runtime, a sink, the volumes. It may
// implement optional interfaces beside the required one. They are named types in the package of
// the required interface, whose documentation describes what is missing without them. [As] finds
// them, also behind wrappers, and the constructors call [Check], so that a wrapper does not hide
// one unnoticed.
//
// # Wrapping a part
//
// A wrapper embeds the required interface, overrides methods and has a method Unwrap:
//
//	type logged struct{ pipeline.Volumes }
//
//	func (l logged) Unwrap() any { return l.Volumes }
//
//	func (l logged) Unmount(ctx context.Context, pod *v1.Pod) error {
//		slog.Info("Unmounting volumes", "pod", pod.Name)
//		return l.Volumes.Unmount(ctx, pod)
//	}
//
// Without Unwrap, agent.New returns the error
//
//	agent: Config.Subsystems.Volumes: main.logged hides Retain (podworker.Retainer) of *volume.Manager; add Unwrap
//
// See [Wrapper] for the wrappers that must not unwrap.
//
// # Observing a part
//
// The Hooks of a Config are a struct of functions, each of which may be nil:
// a part behaves the same with and without them. The method Join of each Hooks type returns
// Hooks that call several, in order; it is written with [Add].
//
//	cfg.Hooks = metrics.Volumes().Join(volume.Hooks{Operated: log})
//
// # Adjusting a part
//
// An assembly such as agent or kube/kubelet has a list of functions that change the
// configurations of its parts, each for the part whose configuration is its parameter:
//
//	cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *podworker.Config) { c.Parallel = 50 }))
//
// A function that sets a limit or a hook does not remove what the assembly or an earlier
// function has set (see [Apply]), and one for a configuration that no part has is an error.
//
// # Stability
//
// Growing: the functions are settled; others may be added.
package compose
