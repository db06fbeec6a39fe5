package replay

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/sim/record"
)

// The size of a frame counts what decoding allocates, not the text.
func TestTheSizeOfAFrameIsThatOfItsMemory(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: make([]v1.Container, 10_000)}}
	assert.Greater(t, sizeOf(record.Frame{Pods: &record.Pods{Changed: []*v1.Pod{pod}}}), 10_000*400)
	assert.Greater(t, sizeOf(record.Frame{Pods: &record.Pods{Changed: []*v1.Pod{{}, {}}}}), 2*900)
	answer := json.RawMessage(make([]byte, 1<<20))
	assert.Greater(t, sizeOf(record.Frame{Call: &record.Call{Answer: answer}}), 1<<20)
	assert.Less(t, sizeOf(record.Frame{Call: &record.Call{Answer: answer, Same: 1}}), 1<<12, "an earlier frame has it")
}
