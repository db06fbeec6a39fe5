package kubelet

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/runtime"
)

func event() runtime.Event {
	return runtime.Event{Type: v1.EventTypeNormal, Reason: "Tested"}
}

func TestCleanupsRunInReverseOrderOnce(t *testing.T) {
	var calls []int
	var c stores.Cleanups
	failed := errors.New("failed")
	for i := range 3 {
		c.Add(func() error {
			calls = append(calls, i)
			if i == 1 {
				return failed
			}
			return nil
		})
	}
	assert.ErrorIs(t, c.Run(), failed, "the others run nevertheless")
	assert.Equal(t, []int{2, 1, 0}, calls)
	assert.NoError(t, c.Run())
	assert.Len(t, calls, 3)
}

func TestRecordTo(t *testing.T) {
	var calls []string
	record := func(name string) func(runtime.Event) {
		return func(e runtime.Event) { calls = append(calls, name+" "+e.Reason) }
	}
	stores.RecordTo(record("a"), record("b"))(event())
	assert.Equal(t, []string{"a Tested", "b Tested"}, calls)
}
