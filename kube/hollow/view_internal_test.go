package hollow

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNodesAreSpreadAndStay(t *testing.T) {
	const nodes = 5000
	five, four := view{"hollow-0", "hollow-1", "hollow-2", "hollow-3", "hollow-4"}, view{"hollow-0", "hollow-1", "hollow-2", "hollow-4"}
	count := map[string]int{}
	for i := range nodes {
		node := fmt.Sprint("kwok-node-", i)
		owner := five.owner(node)
		count[owner]++
		if owner != "hollow-3" {
			assert.Equal(t, owner, four.owner(node), "only the nodes of the process that has left move")
		}
	}
	for member, n := range count {
		assert.InDelta(t, nodes/5, n, 100, member)
	}
	assert.Empty(t, view(nil).owner("n"))
}
