package cgroups_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

func TestReservationsHaveNames(t *testing.T) {
	var zero cgroups.Reservation
	assert.Equal(t, "none tiered all Reservation(3)", fmt.Sprint(zero, " ", cgroups.ReserveTiered, " ", cgroups.ReserveAll, " ", cgroups.ReserveAll+1))
}
