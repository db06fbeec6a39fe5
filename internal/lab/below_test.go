package lab_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// An outcome counts the errors of a test.
type outcome struct {
	testing.TB
	errors int
}

func (o *outcome) Errorf(string, ...any) { o.errors++ }

func TestFiguresDecideOnlyInAFullRun(t *testing.T) {
	for _, tt := range []struct {
		full   string
		is     time.Duration
		errors int
	}{
		{"", time.Second, 0}, {"", time.Hour, 0}, {"1", time.Second, 0}, {"1", time.Minute, 1}, {"1", time.Hour, 1},
	} {
		t.Setenv("KUBEPARTS_FULL", tt.full)
		o := &outcome{TB: t}
		lab.Below(o, "the start", tt.is, time.Minute)
		assert.Equal(t, tt.errors, o.errors, tt)
	}
}
