package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubeparts/kubeparts/podworker"
)

// A Step is a step that is inserted into those of a [Pipeline]; see Config.Steps.
type Step struct {
	// Name is the name of the step, as a verb phrase: "acquire license". No other step may
	// have it.
	Name string

	// Before or After is the name of another step, next to which this one is inserted:
	// [MountVolumes]. Exactly one of them must be set. Of several steps with the same
	// position, the last one is nearest to it.
	Before, After string

	// Run executes the step. It may block until ctx is done, which is when the pod is
	// deleted, or when it exceeds its deadline in Sync. It is called in every Sync, Terminate
	// or Cleanup that reaches it, also for pods whose containers run and after a restart of the
	// agent, and must have no effect if it was completed before.
	//
	// After an error, the call ends and is retried from the first step on. If the error
	// wraps a *runtime.Rejection in Sync, then the pod fails, or stays Pending and is retried if
	// the rejection is deferred (without Admission.Timeout, which applies to the Admitter).
	//
	// The Pod of req has its allocated resources. It is nil for an orphan in Terminate; Cleanup
	// is not called for orphans. Run is called concurrently for different pods.
	Run func(ctx context.Context, req podworker.SyncRequest) error
}

// insert inserts steps into lists, and then removes the positions without a step.
func insert(steps []Step, lists ...*[]step) error {
	for i, s := range steps {
		if err := s.insert(lists); err != nil {
			return fmt.Errorf("pipeline: Config.Steps[%d] %q: %w", i, s.Name, err)
		}
	}
	for _, list := range lists {
		*list = slices.DeleteFunc(*list, func(s step) bool { return s.run == nil })
	}
	return nil
}

func (s Step) insert(lists []*[]step) error {
	switch {
	case s.Name == "":
		return errors.New("no Name")
	case s.Run == nil:
		return errors.New("no Run")
	case (s.Before == "") == (s.After == ""):
		return errors.New("exactly one of Before and After must be set")
	}
	position := s.Before + s.After
	var target *[]step
	var at int
	for _, list := range lists {
		if slices.ContainsFunc(*list, func(other step) bool { return other.name == s.Name }) {
			return errors.New("another step has this Name")
		}
		if i := slices.IndexFunc(*list, func(other step) bool { return other.name == position }); i >= 0 {
			target, at = list, i
		}
	}
	switch {
	case target == nil && s.After != "":
		return fmt.Errorf("no step %q to follow", position)
	case target == nil:
		return fmt.Errorf("no step %q to precede", position)
	case s.After != "":
		at++
	}
	*target = slices.Insert(*target, at, step{s.Name, s.run})
	return nil
}

func (s Step) run(ctx context.Context, c *call) error {
	err := s.Run(ctx, c.SyncRequest)
	if err == nil {
		err = ctx.Err() // no further step must begin
	}
	if err != nil {
		return fmt.Errorf("pipeline: %s: %w", s.Name, err)
	}
	return nil
}
