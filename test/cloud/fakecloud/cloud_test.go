package fakecloud_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/test/cloud"
	"github.com/kubeparts/kubeparts/test/cloud/fakecloud"
)

func list(t *testing.T, c *fakecloud.Cloud) []cloud.Machine {
	machines, err := c.ListMachines(t.Context(), nil)
	require.NoError(t, err)
	return machines
}

func TestATokenCreatesOneMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakecloud.Cloud{Boot: time.Minute, Launch: time.Second}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.CreateMachine(short, cloud.NewMachine{Token: "one"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, cloud.Starting, list(t, c)[0].State, "the canceled creation continues")
		id, err := c.CreateMachine(t.Context(), cloud.NewMachine{Token: "one"})
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, c.StartProcess(t.Context(), id, cloud.NewProcess{Token: "web/0"}))
		}
		machines := list(t, c)
		require.Len(t, machines, 1)
		assert.Equal(t, id, machines[0].ID)
		assert.Equal(t, cloud.Running, machines[0].State)
		assert.Len(t, machines[0].Processes, 1)
	})
}

func TestOfTwoStopsTheLaterOnesGraceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(fakecloud.Cloud)
		c.Behave("stubborn", fake.Behavior{IgnoreTERM: true})
		id, err := c.CreateMachine(t.Context(), cloud.NewMachine{})
		require.NoError(t, err)
		require.NoError(t, c.StartProcess(t.Context(), id, cloud.NewProcess{Image: "stubborn"}))
		web := list(t, c)[0].Processes[0].ID
		begun := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.StopProcess(short, web, time.Hour), context.DeadlineExceeded)
		require.Error(t, c.RemoveProcess(t.Context(), web), "it runs")
		require.NoError(t, c.StopProcess(t.Context(), web, 3*time.Second))
		assert.Equal(t, 4*time.Second, time.Since(begun))
		assert.EqualValues(t, 137, list(t, c)[0].Processes[0].ExitCode)
	})
}

func TestAnAnswerMayBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lost")
		c := &fakecloud.Cloud{Fault: func(call string, done bool) error {
			if call == "CreateMachine" && done {
				return lost
			}
			return nil
		}}
		_, err := c.CreateMachine(t.Context(), cloud.NewMachine{Token: "one"})
		require.ErrorIs(t, err, lost)
		id := list(t, c)[0].ID
		require.NoError(t, c.DestroyMachine(t.Context(), id))
		assert.Empty(t, list(t, c))
		for what, err := range map[string]error{
			"destroy": c.DestroyMachine(t.Context(), id), "stop": c.StopMachine(t.Context(), id), "tag": c.TagMachine(t.Context(), id, nil),
			"start":  c.StartProcess(t.Context(), id, cloud.NewProcess{}),
			"remove": c.RemoveProcess(t.Context(), "p-1"), "stop process": c.StopProcess(t.Context(), "p-1", 0), "crash": c.Crash(id),
		} {
			assert.ErrorIs(t, err, runtime.ErrNotFound, what)
		}
	})
}
