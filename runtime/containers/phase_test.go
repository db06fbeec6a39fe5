package containers_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime/containers"
)

func TestPhasesHaveNames(t *testing.T) {
	var zero containers.Phase
	assert.Equal(t, "queued running exited Phase(3)", fmt.Sprint(zero, " ", containers.Running, " ", containers.Exited, " ", containers.Exited+1))
}
