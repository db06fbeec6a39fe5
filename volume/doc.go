// Package volume gets the volumes of pods ready and away.
package volume
