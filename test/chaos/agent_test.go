package chaos

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEachProcessIsRecordedInADirectory(t *testing.T) {
	a := agent{args: []string{"--v=4"}, launches: 2}
	assert.Equal(t, []string{"--v=4"}, a.arguments())
	a.record = "/recordings"
	assert.Equal(t, []string{"--v=4", "--record-dir=/recordings/agent-002"}, a.arguments())
	assert.Equal(t, []string{"--v=4"}, a.args)
}
