package cri

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestJoinContextErr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := status.Error(codes.DeadlineExceeded, "context deadline exceeded")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.NoError(t, joinContextErr(ctx, nil))
		assert.NotErrorIs(t, joinContextErr(ctx, late), context.DeadlineExceeded, "a timeout of the client itself")
		time.Sleep(990 * time.Millisecond)
		assert.ErrorIs(t, joinContextErr(ctx, late), context.DeadlineExceeded, "the runtime's deadline is slightly early")
		assert.NotErrorIs(t, joinContextErr(ctx, errors.New("busy")), context.DeadlineExceeded)
		time.Sleep(time.Second)
		assert.ErrorIs(t, joinContextErr(ctx, errors.New("busy")), context.DeadlineExceeded)
		assert.NoError(t, joinContextErr(ctx, nil))
	})
}
