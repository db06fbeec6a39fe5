package reasons_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

func TestAReasonAppliesToTheLinesBelowIt(t *testing.T) {
	all := reasons.Parse("no reason\n\n# no disk\nDisk [Slow]\n  Quota\n# no network\nDNS\n")
	assert.Equal(t, []reasons.Reason{{"no reason", ""}, {"Disk [Slow]", "no disk"}, {"Quota", "no disk"}, {"DNS", "no network"}}, all)
	assert.Equal(t, []string{"no reason", `Disk \[Slow\]`, "Quota", "DNS"}, reasons.Patterns(all))
	assert.Equal(t, "no network", reasons.Find(all, "a pod uses DNS").Why)
	assert.Nil(t, reasons.Find(all, "a pod runs"))
}
