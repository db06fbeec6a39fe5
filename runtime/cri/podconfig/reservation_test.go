package podconfig_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestReservationPoliciesHaveNames(t *testing.T) {
	var zero podconfig.MemoryReservationPolicy
	assert.Equal(t, "none tiered all MemoryReservationPolicy(3)", fmt.Sprint(zero, " ", podconfig.ReserveTiered, " ", podconfig.ReserveAll, " ", podconfig.ReserveAll+1))
}
