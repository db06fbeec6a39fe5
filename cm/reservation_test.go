package cm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/cm"
)

func TestReservationsHaveNames(t *testing.T) {
	var zero cm.Reservation
	assert.Equal(t, "none tiered all Reservation(3)", fmt.Sprint(zero, " ", cm.ReserveTiered, " ", cm.ReserveAll, " ", cm.ReserveAll+1))
}
