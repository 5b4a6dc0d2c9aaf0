#pragma once

/// OpenCL C 1.2 of the tests.
namespace gpumeter::benchmark::opencl {

/// c = a * b for square matrices by rows. T: type of the factors, ACC: of the sums and of c; ACC16 and
/// TO_ACC16: its vector. The size is a multiple of 64.
///
/// gemm_tiled is for GPUs: a group of 16 x 16 work-items computes 64 x 64 elements from tiles in local
/// memory, each work-item 4 x 4. gemm_direct is for devices whose local memory is the same as the rest, and
/// whose work-items are vectors: each computes 4 rows of 16 columns.
inline constexpr const char* kGemmSource = R"(
#ifdef NEEDS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef NEEDS_FP16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void gemm_tiled(uint n, global const T* restrict a, global const T* restrict b, global ACC* restrict c) {
  local T as[16][64 + 1];
  local T bs[16][64];
  const uint x = get_local_id(0), y = get_local_id(1), item = y * 16 + x;
  const uint row = get_group_id(1) * 64, column = get_group_id(0) * 64;
  ACC sums[4][4];
  for (uint i = 0; i < 4; ++i)
    for (uint j = 0; j < 4; ++j) sums[i][j] = 0;
  for (uint first = 0; first < n; first += 16) {
    for (uint i = 0; i < 4; ++i) {
      const uint place = item + i * 256;
      as[place % 16][place / 16] = a[(row + place / 16) * n + first + place % 16];
      bs[place / 64][place % 64] = b[(first + place / 64) * n + column + place % 64];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < 16; ++k) {
      ACC right[4];
      for (uint j = 0; j < 4; ++j) right[j] = (ACC)bs[k][x + 16 * j];
      for (uint i = 0; i < 4; ++i) {
        const ACC left = (ACC)as[k][y + 16 * i];
        for (uint j = 0; j < 4; ++j) sums[i][j] += left * right[j];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint i = 0; i < 4; ++i)
    for (uint j = 0; j < 4; ++j) c[(row + y + 16 * i) * n + column + x + 16 * j] = sums[i][j];
}

kernel void gemm_direct(uint n, global const T* restrict a, global const T* restrict b, global ACC* restrict c) {
  const uint row = get_global_id(0) * 4, column = get_global_id(1) * 16;
  global const T* const left = a + row * n;
  ACC16 sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
  for (uint k = 0; k < n; ++k) {
    const ACC16 right = TO_ACC16(vload16(0, b + k * n + column));
    sum0 += (ACC)left[k] * right;
    sum1 += (ACC)left[k + n] * right;
    sum2 += (ACC)left[k + 2 * n] * right;
    sum3 += (ACC)left[k + 3 * n] * right;
  }
  vstore16(sum0, 0, c + row * n + column);
  vstore16(sum1, 0, c + (row + 1) * n + column);
  vstore16(sum2, 0, c + (row + 2) * n + column);
  vstore16(sum3, 0, c + (row + 3) * n + column);
}
)";

/// Memory is filled with pattern(place, seed). Sums of unsigned numbers are exact in each order. Each
/// work-item works on one uint4, except those of `read_all`, which add kReadsPerItem of them.
inline constexpr const char* kMemorySource = R"(
uint4 pattern(uint place, uint seed) { return ((uint4)(4, 3, 2, 1) + place * 4) * 2654435761u + seed; }

kernel void write_all(global uint4* restrict to, uint seed) {
  const uint i = get_global_id(0);
  to[i] = pattern(i, seed);
}
kernel void copy_all(global const uint4* restrict from, global uint4* restrict to) {
  const uint i = get_global_id(0);
  to[i] = from[i];
}
kernel void triad(global const uint4* restrict b, global const uint4* restrict c, global uint4* restrict a, uint scalar) {
  const uint i = get_global_id(0);
  a[i] = b[i] + scalar * c[i];
}
kernel void read_all(global const uint4* restrict from, global uint* restrict sums) {
  const uint start = get_group_id(0) * get_local_size(0) * READS + get_local_id(0);
  uint4 sum = 0;
  for (uint k = 0; k < READS; ++k) sum += from[start + k * get_local_size(0)];
  sums[get_global_id(0)] = sum.x + sum.y + sum.z + sum.w;
}
/// Counts the places whose memory is not first(place) + scalar * second(place).
kernel void count_wrong(global const uint4* restrict memory, uint first, uint scalar, uint second, global uint* restrict wrong) {
  const uint i = get_global_id(0);
  const uint4 expected = scalar == 0 ? pattern(i, first) : pattern(i, first) + scalar * pattern(i, second);
  if (any(memory[i] != expected)) atomic_inc(wrong);
}
kernel void flip(global uint* memory, uint place, uint bit) { memory[place] ^= bit; }
)";
inline constexpr unsigned kReadsPerItem = 16;

}  // namespace gpumeter::benchmark::opencl
