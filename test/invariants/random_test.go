// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import "math/rand/v2"

// fork returns another source of random numbers, whose numbers do not depend on how many others take.
func fork(random *rand.Rand) *rand.Rand {
	return rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))
}

// pick returns one of some things.
func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// choice is one of several things. It is chosen as often as its weight says, compared to the weights of the others.
type choice[T any] struct {
	weight int
	what   T
}

// choose returns one of some things.
func choose[T any](random *rand.Rand, from []choice[T]) T {
	total := 0
	for _, c := range from {
		total += c.weight
	}
	n := random.IntN(total)
	i := 0
	for ; n >= from[i].weight; i++ {
		n -= from[i].weight
	}
	return from[i].what
}
