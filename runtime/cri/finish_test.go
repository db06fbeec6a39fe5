package cri

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

type key struct{}

func TestFinishLetsACallEndByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		patient, done := finishContext(ctx)
		assert.Equal(t, "value", patient.Value(key{}))
		cancel()
		time.Sleep(finishTime - 1)
		assert.NoError(t, patient.Err(), "the call may finish")
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		assert.ErrorIs(t, patient.Err(), context.Canceled, "the time is limited")
		done()

		early, done := finishContext(t.Context())
		done()
		assert.Error(t, early.Err())
	})
}
