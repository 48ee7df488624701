"""Programs judged by 2, 8 or 32 tests (Zhang's post): how exact must a reward be?"""
